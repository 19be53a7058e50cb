// SPDX-License-Identifier: BSD-2-Clause
use crate::{check, count, length, sys, Real, Result};
use std::{marker::PhantomData, mem};

/// Softmax attention of packed q `[B][H][M][D]` over k `[B][Hk][N][D]` and v `[B][Hk][N][E]`.
///
/// ```
/// let problem = sattn::Attention::<f64>::new([1, 1, 1], [2, 2], [1, 1]).unwrap().causal();
/// let (out, _) = problem.forward(&[0., 0.], &[1., 1.], &[3., 5.]).unwrap();
/// assert_eq!(out, [3., 4.]);
/// ```
#[derive(Clone, Copy)]
pub struct Attention<T> {
    raw: sys::sattn_attention,
    element: PhantomData<T>,
}

/// Gradients, shaped as what they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionGradients<T> {
    pub q: Vec<T>,
    pub k: Vec<T>,
    pub v: Vec<T>,
}

impl<T: Real> Attention<T> {
    /// batch, heads, key heads; queries, keys; key width, value width. The scale is 1 / sqrt(key width).
    pub fn new(heads: [usize; 3], rows: [usize; 2], widths: [usize; 2]) -> Result<Self> {
        let size = mem::size_of::<sys::sattn_attention>() as i64;
        // SAFETY: all members may be zero
        let mut raw: sys::sattn_attention = unsafe { mem::zeroed() };
        let [b, h, hk] = heads.map(|n| n as i64);
        let ([m, n], [d, e]) = (rows.map(|n| n as i64), widths.map(|n| n as i64));
        // SAFETY: raw is of that size
        check(unsafe { sys::sattn_attention_init(&mut raw, size, b, h, hk, m, n, d, e) })?;
        Ok(Attention { raw, element: PhantomData })
    }

    /// A query sees no key after its own; the last query stands opposite the last key.
    #[must_use]
    pub fn causal(mut self) -> Self {
        self.raw.right = 0;
        self.raw.diagonal = 1;
        self
    }

    #[must_use]
    pub fn scale(mut self, scale: f64) -> Self {
        self.raw.scale = scale;
        self
    }

    /// 0 = the library's default.
    #[must_use]
    pub fn threads(mut self, threads: i32) -> Self {
        self.raw.threads = threads;
        self
    }

    fn sizes(&self) -> [[usize; 4]; 4] {
        let p = &self.raw;
        let [b, h, hk, m] = [p.batch, p.heads, p.key_heads, p.queries].map(|n| n as usize);
        let [n, d, e] = [p.keys, p.width, p.value_width].map(|n| n as usize);
        [[b, h, m, d], [b, hk, n, d], [b, hk, n, e], [b, h, m, e]]
    }

    fn inputs(&self, q: &[T], k: &[T], v: &[T]) -> Result<sys::sattn_attention> {
        let [of_q, of_k, of_v, _] = self.sizes();
        length("q", q, &of_q)?;
        length("k", k, &of_k)?;
        length("v", v, &of_v)?;
        let mut raw = self.raw;
        raw.q.data = q.as_ptr().cast();
        raw.k.data = k.as_ptr().cast();
        raw.v.data = v.as_ptr().cast();
        Ok(raw)
    }

    /// The answers `[B][H][M][E]` and statistics `[B][H][M][2]`: the largest score, the logarithm of the sum of exponentials less it.
    pub fn forward(&self, q: &[T], k: &[T], v: &[T]) -> Result<(Vec<T>, Vec<T>)> {
        let [[b, h, m, _], _, _, of_out] = self.sizes();
        let mut raw = self.inputs(q, k, v)?;
        let mut out = vec![T::default(); count(&of_out)?];
        let mut stats = vec![T::default(); count(&[b, h, m, 2])?];
        raw.out.data = out.as_mut_ptr().cast();
        raw.stats.data = stats.as_mut_ptr().cast();
        // SAFETY: every array has the packed shape of the descriptor
        check(unsafe { T::ATTENTION[0](&raw) })?;
        Ok((out, stats))
    }

    /// The gradients of `<dout, out>`, given what `forward` returned.
    pub fn backward(&self, inputs: [&[T]; 3], (out, stats): (&[T], &[T]), dout: &[T]) -> Result<AttentionGradients<T>> {
        let [of_q, of_k, of_v, of_out] = self.sizes();
        let mut raw = self.inputs(inputs[0], inputs[1], inputs[2])?;
        length("out", out, &of_out)?;
        length("stats", stats, &[of_q[0], of_q[1], of_q[2], 2])?;
        length("dout", dout, &of_out)?;
        let zeros = |sizes: &[usize]| Ok(vec![T::default(); count(sizes)?]);
        let mut g = AttentionGradients { q: zeros(&of_q)?, k: zeros(&of_k)?, v: zeros(&of_v)? };
        // backward only reads these two
        raw.out.data = out.as_ptr().cast_mut().cast();
        raw.stats.data = stats.as_ptr().cast_mut().cast();
        raw.dout.data = dout.as_ptr().cast();
        raw.dq.data = g.q.as_mut_ptr().cast();
        raw.dk.data = g.k.as_mut_ptr().cast();
        raw.dv.data = g.v.as_mut_ptr().cast();
        // SAFETY: every array has the packed shape of the descriptor
        check(unsafe { T::ATTENTION[1](&raw) })?;
        Ok(g)
    }
}
