// SPDX-License-Identifier: BSD-2-Clause
//! The C ABI, word for word: `sattn/attention.h`, `mixture.h`, `softmax.h` are its manual.
#![allow(non_camel_case_types)]
use std::os::raw::{c_char, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct sattn_input {
    pub data: *const c_void,
    pub batch: i64,
    pub head: i64,
    pub row: i64,
    pub col: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct sattn_output {
    pub data: *mut c_void,
    pub batch: i64,
    pub head: i64,
    pub row: i64,
    pub col: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct sattn_attention {
    pub size: i64,
    pub batch: i64,
    pub heads: i64,
    pub key_heads: i64,
    pub queries: i64,
    pub keys: i64,
    pub width: i64,
    pub value_width: i64,
    pub scale: f64,
    pub softcap: f64,
    pub left: i64,
    pub right: i64,
    pub diagonal: i32,
    pub storage: i32,
    pub flags: i32,
    pub threads: i32,
    pub key_length: *const i64,
    pub query_offset: *const i64,
    pub key_offset: *const i64,
    pub page: *const i32,
    pub page_batch: i64,
    pub page_size: i64,
    pub q: sattn_input,
    pub k: sattn_input,
    pub v: sattn_input,
    pub bias: sattn_input,
    pub mask: sattn_input,
    pub slope: sattn_input,
    pub sink: sattn_input,
    pub out: sattn_output,
    pub stats: sattn_output,
    pub lse: sattn_output,
    pub dout: sattn_input,
    pub dlse: sattn_input,
    pub dq: sattn_output,
    pub dk: sattn_output,
    pub dv: sattn_output,
    pub dbias: sattn_output,
    pub dsink: sattn_output,
    pub dscale: *mut c_void,
    pub work: *mut c_void,
    pub work_bytes: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct sattn_mixture {
    pub size: i64,
    pub batch: i64,
    pub queries: i64,
    pub components: i64,
    pub width: i64,
    pub value_width: i64,
    pub covariance_kind: i32,
    pub flags: i32,
    pub threads: i32,
    pub rank: i32,
    pub tilt: *const c_void,
    pub tilt_batch: i64,
    pub tilt_row: i64,
    pub log_weight: *const c_void,
    pub log_weight_batch: i64,
    pub mean: *const c_void,
    pub mean_batch: i64,
    pub covariance: *const c_void,
    pub covariance_batch: i64,
    pub value_mean: *const c_void,
    pub value_mean_batch: i64,
    pub cross: *const c_void,
    pub cross_batch: i64,
    pub out: *mut c_void,
    pub out_batch: i64,
    pub out_row: i64,
    pub stats: *mut c_void,
    pub stats_batch: i64,
    pub cgf: *mut c_void,
    pub cgf_batch: i64,
    pub weight: *mut c_void,
    pub weight_batch: i64,
    pub weight_row: i64,
    pub dout: *const c_void,
    pub dout_batch: i64,
    pub dout_row: i64,
    pub dcgf: *const c_void,
    pub dcgf_batch: i64,
    pub dtilt: *mut c_void,
    pub dtilt_batch: i64,
    pub dtilt_row: i64,
    pub dlog_weight: *mut c_void,
    pub dmean: *mut c_void,
    pub dcovariance: *mut c_void,
    pub dvalue_mean: *mut c_void,
    pub dcross: *mut c_void,
    pub work: *mut c_void,
    pub work_bytes: i64,
}

type Row<T> = unsafe extern "C" fn(i64, i64, *const T, i64, *mut T, i64, i32) -> i32;

extern "C" {
    pub fn sattn_status_string(status: i32) -> *const c_char;
    pub fn sattn_version() -> i32;
    pub fn sattn_softmax_f32(rows: i64, n: i64, x: *const f32, ldx: i64, y: *mut f32, ldy: i64, threads: i32) -> i32;
    pub fn sattn_softmax_f64(rows: i64, n: i64, x: *const f64, ldx: i64, y: *mut f64, ldy: i64, threads: i32) -> i32;
    pub fn sattn_attention_init(
        p: *mut sattn_attention,
        size: i64,
        batch: i64,
        heads: i64,
        key_heads: i64,
        queries: i64,
        keys: i64,
        width: i64,
        value_width: i64,
    ) -> i32;
    pub fn sattn_attention_forward_f32(p: *const sattn_attention) -> i32;
    pub fn sattn_attention_forward_f64(p: *const sattn_attention) -> i32;
    pub fn sattn_attention_backward_f32(p: *const sattn_attention) -> i32;
    pub fn sattn_attention_backward_f64(p: *const sattn_attention) -> i32;
    pub fn sattn_mixture_init(
        p: *mut sattn_mixture,
        size: i64,
        batch: i64,
        queries: i64,
        components: i64,
        width: i64,
        value_width: i64,
        covariance_kind: i32,
    ) -> i32;
    pub fn sattn_mixture_forward_f32(p: *const sattn_mixture) -> i32;
    pub fn sattn_mixture_forward_f64(p: *const sattn_mixture) -> i32;
    pub fn sattn_mixture_backward_f32(p: *const sattn_mixture) -> i32;
    pub fn sattn_mixture_backward_f64(p: *const sattn_mixture) -> i32;
}

/// The functions of one element type: `f32` or `f64`.
pub trait Real: Copy + Default + private::Sealed {
    #[doc(hidden)]
    const SOFTMAX: Row<Self>;
    #[doc(hidden)]
    const ATTENTION: [unsafe extern "C" fn(*const sattn_attention) -> i32; 2];
    #[doc(hidden)]
    const MIXTURE: [unsafe extern "C" fn(*const sattn_mixture) -> i32; 2];
}

mod private {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    const SOFTMAX: Row<f32> = sattn_softmax_f32;
    const ATTENTION: [unsafe extern "C" fn(*const sattn_attention) -> i32; 2] =
        [sattn_attention_forward_f32, sattn_attention_backward_f32];
    const MIXTURE: [unsafe extern "C" fn(*const sattn_mixture) -> i32; 2] =
        [sattn_mixture_forward_f32, sattn_mixture_backward_f32];
}

impl Real for f64 {
    const SOFTMAX: Row<f64> = sattn_softmax_f64;
    const ATTENTION: [unsafe extern "C" fn(*const sattn_attention) -> i32; 2] =
        [sattn_attention_forward_f64, sattn_attention_backward_f64];
    const MIXTURE: [unsafe extern "C" fn(*const sattn_mixture) -> i32; 2] =
        [sattn_mixture_forward_f64, sattn_mixture_backward_f64];
}
