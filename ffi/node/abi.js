// SPDX-License-Identifier: BSD-2-Clause
// The C ABI, word for word: sattn/attention.h, mixture.h and softmax.h are its manual.
'use strict';
const koffi = require('koffi');

const library = koffi.load(process.env.SATTN_LIBRARY || 'libsattn.so.0');

const fields = (type, names) => Object.fromEntries(names.split(' ').map((name) => [name, type]));
const array = (name) => ({ [name]: 'void *' });
const strided = koffi.struct('sattn_array', { data: 'void *', ...fields('int64_t', 'batch head row col') });

const attention = koffi.struct('sattn_attention', {
  ...fields('int64_t', 'size batch heads key_heads queries keys width value_width'),
  ...fields('double', 'scale softcap'),
  ...fields('int64_t', 'left right'),
  ...fields('int32_t', 'diagonal storage flags threads'),
  ...fields('void *', 'key_length query_offset key_offset page'),
  ...fields('int64_t', 'page_batch page_size'),
  ...fields(strided, 'q k v bias mask slope sink out stats lse dout dlse dq dk dv dbias dsink'),
  ...fields('void *', 'dscale work'),
  work_bytes: 'int64_t',
});

const mixture = koffi.struct('sattn_mixture', {
  ...fields('int64_t', 'size batch queries components width value_width'),
  ...fields('int32_t', 'covariance_kind flags threads rank'),
  ...array('tilt'), ...fields('int64_t', 'tilt_batch tilt_row'),
  ...array('log_weight'), log_weight_batch: 'int64_t',
  ...array('mean'), mean_batch: 'int64_t',
  ...array('covariance'), covariance_batch: 'int64_t',
  ...array('value_mean'), value_mean_batch: 'int64_t',
  ...array('cross'), cross_batch: 'int64_t',
  ...array('out'), ...fields('int64_t', 'out_batch out_row'),
  ...array('stats'), stats_batch: 'int64_t',
  ...array('cgf'), cgf_batch: 'int64_t',
  ...array('weight'), ...fields('int64_t', 'weight_batch weight_row'),
  ...array('dout'), ...fields('int64_t', 'dout_batch dout_row'),
  ...array('dcgf'), dcgf_batch: 'int64_t',
  ...array('dtilt'), ...fields('int64_t', 'dtilt_batch dtilt_row'),
  ...fields('void *', 'dlog_weight dmean dcovariance dvalue_mean dcross work'),
  work_bytes: 'int64_t',
});

const typed = (name, parameters) => ({
  f32: library.func(`int32_t ${name}_f32(${parameters})`),
  f64: library.func(`int32_t ${name}_f64(${parameters})`),
});
const row = 'int64_t rows, int64_t n, const void *x, int64_t ldx, void *y, int64_t ldy, int32_t threads';

module.exports = {
  size: { attention: koffi.sizeof(attention), mixture: koffi.sizeof(mixture) },
  statusString: library.func('const char *sattn_status_string(int32_t status)'),
  versionString: library.func('const char *sattn_version_string()'),
  softmax: typed('sattn_softmax', row),
  attentionInit: library.func('int32_t sattn_attention_init(_Out_ sattn_attention *p, int64_t size, int64_t batch, int64_t heads,' +
    ' int64_t key_heads, int64_t queries, int64_t keys, int64_t width, int64_t value_width)'),
  attentionForward: typed('sattn_attention_forward', 'const sattn_attention *p'),
  attentionBackward: typed('sattn_attention_backward', 'const sattn_attention *p'),
  mixtureInit: library.func('int32_t sattn_mixture_init(_Out_ sattn_mixture *p, int64_t size, int64_t batch, int64_t queries,' +
    ' int64_t components, int64_t width, int64_t value_width, int32_t covariance_kind)'),
  mixtureForward: typed('sattn_mixture_forward', 'const sattn_mixture *p'),
  mixtureBackward: typed('sattn_mixture_backward', 'const sattn_mixture *p'),
};
