//! Gives librcc.so its name: what a program that is linked with it looks for, however it was named to the linker.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,librcc.so");
}
