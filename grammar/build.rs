//! Generates the parser from `src/coll.lalrpop` into the build folder.

fn main() {
    println!("cargo::rerun-if-changed=src/coll.lalrpop");
    let mut configuration = lalrpop::Configuration::new();
    configuration.emit_rerun_directives(false).use_cargo_dir_conventions();
    if let Err(error) = configuration.process() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
