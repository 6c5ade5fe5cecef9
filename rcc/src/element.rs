//! What buffers are made of: the element types that collectives know, and the memory they lie in.
//!
//! In: slices, vectors, arrays, or memory that peers may reach into. Out: bytes for the runtime. [`Element`] is one of the twelve
//! types; [`Memory`] and [`MemoryMut`] are what calls accept.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use half::{bf16, f16};
use plan::dtype::Dtype;
use plan::float8::{F8E4m3, F8E5m2};
use runtime::memory::registered;

/// An element of a buffer.
///
/// # Safety
/// The type has the size of its `DTYPE`, no padding, and every pattern of bits is a value of it.
pub unsafe trait Element: Copy + Send + Sync + 'static {
    /// Which type it is.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($ty:ty => $dtype:ident),* $(,)?) => {
        $(
            // SAFETY: a number of the size that the name says; all of its patterns are values.
            unsafe impl Element for $ty {
                const DTYPE: Dtype = Dtype::$dtype;
            }
        )*
    };
}

elements! {
    f32 => F32, f64 => F64, f16 => F16, bf16 => Bf16, F8E4m3 => F8E4m3, F8E5m2 => F8E5m2,
    i8 => I8, i32 => I32, i64 => I64, u8 => U8, u32 => U32, u64 => U64,
}

/// Memory that a call reads.
pub trait Memory<T: Element> {
    /// The elements.
    fn elements(&self) -> &[T];

    /// The same as memory that peers may reach into, if it is that.
    fn registered(&self) -> Option<&Registered<T>> {
        None
    }
}

/// Memory that a call writes.
pub trait MemoryMut<T: Element>: Memory<T> {
    /// The elements.
    fn elements_mut(&mut self) -> &mut [T];

    /// The same as memory that peers may reach into, if it is that.
    fn registered_mut(&mut self) -> Option<&mut Registered<T>> {
        None
    }
}

impl<T: Element> Memory<T> for [T] {
    fn elements(&self) -> &[T] {
        self
    }
}

impl<T: Element> MemoryMut<T> for [T] {
    fn elements_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Element> Memory<T> for Vec<T> {
    fn elements(&self) -> &[T] {
        self
    }
}

impl<T: Element> MemoryMut<T> for Vec<T> {
    fn elements_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Element, const N: usize> Memory<T> for [T; N] {
    fn elements(&self) -> &[T] {
        self
    }
}

impl<T: Element, const N: usize> MemoryMut<T> for [T; N] {
    fn elements_mut(&mut self) -> &mut [T] {
        self
    }
}

/// Memory that peers may reach into: from [`Communicator::alloc`](crate::Communicator::alloc). It reads like a slice; after a call
/// has failed it may be empty, since a peer may still write there.
#[derive(Debug)]
pub struct Registered<T> {
    memory: registered::Registered,
    element: PhantomData<T>,
}

impl<T: Element> Registered<T> {
    pub(crate) fn new(memory: registered::Registered) -> Registered<T> {
        Registered { memory, element: PhantomData }
    }

    pub(crate) fn memory(&self) -> &registered::Registered {
        &self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut registered::Registered {
        &mut self.memory
    }
}

impl<T: Element> Deref for Registered<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let bytes = self.memory.bytes();
        // SAFETY: every pattern is a value of `T`; it begins at a page (or is empty, and well aligned because it is part of the same).
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
    }
}

impl<T: Element> DerefMut for Registered<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let bytes = self.memory.bytes_mut();
        // SAFETY: as above, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len() / size_of::<T>()) }
    }
}

impl<T: Element> Memory<T> for Registered<T> {
    fn elements(&self) -> &[T] {
        self
    }

    fn registered(&self) -> Option<&Registered<T>> {
        Some(self)
    }
}

impl<T: Element> MemoryMut<T> for Registered<T> {
    fn elements_mut(&mut self) -> &mut [T] {
        self
    }

    fn registered_mut(&mut self) -> Option<&mut Registered<T>> {
        Some(self)
    }
}

/// The bytes of elements.
#[inline]
pub(crate) fn bytes<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding, and any byte may be read.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// The bytes of elements, to be written.
#[inline]
pub(crate) fn bytes_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: elements have no padding, and every pattern of bits is a value.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<T: Element>() -> Dtype {
        assert_eq!(size_of::<T>() as u32, T::DTYPE.size());
        T::DTYPE
    }

    #[test]
    fn every_type_is_there_once_and_as_large_as_it_says() {
        let mut all = [
            size::<f32>(),
            size::<f64>(),
            size::<f16>(),
            size::<bf16>(),
            size::<F8E4m3>(),
            size::<F8E5m2>(),
            size::<i8>(),
            size::<i32>(),
            size::<i64>(),
            size::<u8>(),
            size::<u32>(),
            size::<u64>(),
        ];
        all.sort_unstable();
        assert_eq!(all, Dtype::ALL);
    }
}
