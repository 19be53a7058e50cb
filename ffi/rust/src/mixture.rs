// SPDX-License-Identifier: BSD-2-Clause
use crate::{check, count, length, sys, Real, Result};
use std::mem;

/// The covariances of the C components, packed.
#[derive(Clone, Debug, PartialEq)]
pub enum Covariance<T> {
    Zero,
    /// `[C][D]` variances
    Diagonal(Vec<T>),
    /// `[C][D][D]`, symmetric
    Full(Vec<T>),
    /// `[C]` variances
    Isotropic(Vec<T>),
    /// `[C][D][D]`, lower factors
    Cholesky(Vec<T>),
    /// `[C][D + D rank]`: variances, then the factor `[D][rank]`
    LowRank { rank: usize, values: Vec<T> },
}

impl<T> Covariance<T> {
    /// kind of the C library, values, elements for one component
    fn parts(&self, d: usize) -> (i32, &[T], Result<usize>) {
        match self {
            Covariance::Zero => (0, &[], Ok(0)),
            Covariance::Diagonal(s) => (1, s, Ok(d)),
            Covariance::Full(s) => (2, s, count(&[d, d])),
            Covariance::Isotropic(s) => (3, s, Ok(1)),
            Covariance::Cholesky(s) => (4, s, count(&[d, d])),
            Covariance::LowRank { rank, values } => (5, values, count(&[d, rank.saturating_add(1)])),
        }
    }

    fn like(&self, values: Vec<T>) -> Self {
        match self {
            Covariance::Zero => Covariance::Zero,
            Covariance::Diagonal(_) => Covariance::Diagonal(values),
            Covariance::Full(_) => Covariance::Full(values),
            Covariance::Isotropic(_) => Covariance::Isotropic(values),
            Covariance::Cholesky(_) => Covariance::Cholesky(values),
            Covariance::LowRank { rank, .. } => Covariance::LowRank { rank: *rank, values },
        }
    }
}

/// A Gaussian mixture of C components in D dimensions whose values are its keys: the law of an infinite prompt's tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixture<T> {
    pub log_weight: Vec<T>, // [C]
    pub mean: Vec<T>,       // [C][D]
    pub covariance: Covariance<T>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MixtureOutput<T> {
    pub out: Vec<T>,   // [M][D]
    pub cgf: Vec<T>,   // [M]
    pub stats: Vec<T>, // [M][2], for backward
}

#[derive(Clone, Debug, PartialEq)]
pub struct MixtureGradients<T> {
    pub tilt: Vec<T>, // [M][D]
    pub mixture: Mixture<T>,
}

impl<T: Real> Mixture<T> {
    fn prepare(&self, tilt: &[T]) -> Result<(sys::sattn_mixture, usize, usize)> {
        let c = self.log_weight.len();
        let d = self.mean.len().checked_div(c).unwrap_or(0);
        let m = tilt.len().checked_div(d).unwrap_or(0);
        let (kind, values, each) = self.covariance.parts(d);
        length("mean", &self.mean, &[c, d])?;
        length("covariance", values, &[c, each?])?;
        length("tilt", tilt, &[m, d])?;
        // SAFETY: all members may be zero
        let mut raw: sys::sattn_mixture = unsafe { mem::zeroed() };
        let size = mem::size_of::<sys::sattn_mixture>() as i64;
        // SAFETY: raw is of that size
        check(unsafe { sys::sattn_mixture_init(&mut raw, size, 1, m as i64, c as i64, d as i64, 0, kind) })?;
        if let Covariance::LowRank { rank, .. } = self.covariance {
            raw.rank = i32::try_from(rank).map_err(|_| crate::Error::Status(-2))?;
            raw.covariance_batch = values.len() as i64;
        }
        raw.tilt = tilt.as_ptr().cast();
        raw.log_weight = self.log_weight.as_ptr().cast();
        raw.mean = self.mean.as_ptr().cast();
        if kind != 0 {
            raw.covariance = values.as_ptr().cast();
        }
        Ok((raw, m, d))
    }

    /// The answers to M tilted queries `[M][D]`.
    pub fn forward(&self, tilt: &[T]) -> Result<MixtureOutput<T>> {
        let (mut raw, m, d) = self.prepare(tilt)?;
        let zeros = |n: usize| vec![T::default(); n];
        let mut r = MixtureOutput { out: zeros(m * d), cgf: zeros(m), stats: zeros(2 * m) };
        raw.out = r.out.as_mut_ptr().cast();
        raw.cgf = r.cgf.as_mut_ptr().cast();
        raw.stats = r.stats.as_mut_ptr().cast();
        // SAFETY: every array has the packed shape of the descriptor
        check(unsafe { T::MIXTURE[0](&raw) })?;
        Ok(r)
    }

    /// The gradients of `<dout, out>`, given what `forward` returned.
    pub fn backward(&self, tilt: &[T], r: &MixtureOutput<T>, dout: &[T]) -> Result<MixtureGradients<T>> {
        let (mut raw, m, d) = self.prepare(tilt)?;
        length("out", &r.out, &[m, d])?;
        length("stats", &r.stats, &[m, 2])?;
        length("dout", dout, &[m, d])?;
        let zeros = |n: usize| vec![T::default(); n];
        let mut dtilt = zeros(tilt.len());
        let (mut dlog_weight, mut dmean) = (zeros(self.log_weight.len()), zeros(self.mean.len()));
        let mut dcovariance = zeros(self.covariance.parts(d).1.len());
        // backward only reads these two
        raw.out = r.out.as_ptr().cast_mut().cast();
        raw.stats = r.stats.as_ptr().cast_mut().cast();
        raw.dout = dout.as_ptr().cast();
        raw.dtilt = dtilt.as_mut_ptr().cast();
        raw.dlog_weight = dlog_weight.as_mut_ptr().cast();
        raw.dmean = dmean.as_mut_ptr().cast();
        if raw.covariance_kind != 0 {
            raw.dcovariance = dcovariance.as_mut_ptr().cast();
        }
        // SAFETY: every array has the packed shape of the descriptor
        check(unsafe { T::MIXTURE[1](&raw) })?;
        let covariance = self.covariance.like(dcovariance);
        Ok(MixtureGradients { tilt: dtilt, mixture: Mixture { log_weight: dlog_weight, mean: dmean, covariance } })
    }
}
