// SPDX-License-Identifier: BSD-2-Clause
//! Softmax attention over finite prompts, and its infinite-prompt limit on Gaussian mixtures, for `f32` and `f64`.
//!
//! Safe functions over packed slices; every option of the C library is in [`sys`]. Lengths are checked here, everything
//! else by the library, which writes nothing unless it succeeds.
mod attention;
mod mixture;
pub mod sys;

pub use attention::{Attention, AttentionGradients};
pub use mixture::{Covariance, Mixture, MixtureGradients, MixtureOutput};
pub use sys::Real;

use std::{ffi::CStr, fmt};

/// A status of the library, or a slice of the wrong length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    Status(i32),
    Length { name: &'static str, expected: usize, found: usize },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Status(status) => {
                // SAFETY: a static string, never NULL
                let text = unsafe { CStr::from_ptr(sys::sattn_status_string(*status)) };
                f.write_str(&text.to_string_lossy())
            }
            Error::Length { name, expected, found } => write!(f, "{name} has {found} elements, not {expected}"),
        }
    }
}

impl std::error::Error for Error {}

pub type Result<T> = std::result::Result<T, Error>;

fn check(status: i32) -> Result<()> {
    if status == 0 {
        Ok(())
    } else {
        Err(Error::Status(status))
    }
}

/// The product of sizes, as a length that a slice can have.
fn count(sizes: &[usize]) -> Result<usize> {
    let too_large = Error::Status(-2); // SATTN_ESIZE
    let product = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).ok_or(too_large)?;
    if product > isize::MAX as usize / 8 {
        return Err(too_large);
    }
    Ok(product)
}

fn length<T>(name: &'static str, slice: &[T], sizes: &[usize]) -> Result<()> {
    let expected = count(sizes)?;
    if slice.len() == expected {
        Ok(())
    } else {
        Err(Error::Length { name, expected, found: slice.len() })
    }
}

/// The softmax of each of `x.len() / columns` rows.
///
/// ```
/// let mut y = [0f32; 3];
/// sattn::softmax(3, &[0., 0., f32::NEG_INFINITY], &mut y).unwrap();
/// assert_eq!(y, [0.5, 0.5, 0.]);
/// ```
pub fn softmax<T: Real>(columns: usize, x: &[T], y: &mut [T]) -> Result<()> {
    let rows = x.len().checked_div(columns).unwrap_or(0);
    length("x", x, &[rows, columns])?;
    length("y", y, &[rows, columns])?;
    // SAFETY: both slices hold rows * columns elements
    check(unsafe {
        T::SOFTMAX(rows as i64, columns as i64, x.as_ptr(), columns as i64, y.as_mut_ptr(), columns as i64, 0)
    })
}
