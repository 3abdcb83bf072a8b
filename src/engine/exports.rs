//! What the wasm exports. Text crosses as a pointer and a length; the loader is `engine/engine.mjs`.

use crate::engine;

/// Memory for a request of `length` bytes. `curfew_call` frees it.
#[unsafe(no_mangle)]
pub extern "C" fn curfew_alloc(length: usize) -> *mut u8 {
    let bytes = vec![0u8; length].into_boxed_slice();
    Box::into_raw(bytes).cast()
}

/// Answers the request at `pointer`, which `curfew_alloc` gave. The result is the address of the answer and, in the upper half,
/// its length. `curfew_free` frees it.
///
/// # Safety
/// `pointer` and `length` are those of one call of `curfew_alloc`, and are used once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curfew_call(pointer: *mut u8, length: usize) -> u64 {
    // SAFETY: as the caller promises.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(pointer, length)) };
    let answer = match std::str::from_utf8(&request) {
        Ok(request) => engine::call(request),
        // The loader encodes strings, so that this is a bug of another loader.
        Err(_) => engine::call(""),
    };
    let answer = answer.into_bytes().into_boxed_slice();
    let length = answer.len() as u64;
    let address = Box::into_raw(answer).cast::<u8>() as usize as u64;
    length << 32 | address
}

/// Frees an answer of `curfew_call`.
///
/// # Safety
/// `pointer` and `length` are those of one answer, and are used once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn curfew_free(pointer: *mut u8, length: usize) {
    // SAFETY: as the caller promises.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(pointer, length)) });
}
