// SPDX-License-Identifier: BSD-2-Clause
// Softmax attention over finite prompts, and its infinite-prompt limit on Gaussian mixtures, over packed Float32Array or
// Float64Array. Errors throw; every option of the C library is in abi.js.
'use strict';
const abi = require('./abi.js');

const kinds = { zero: 0, diagonal: 1, full: 2, isotropic: 3, cholesky: 4, lowRank: 5 };

class SattnError extends Error {
  constructor(status) {
    super(abi.statusString(status));
    this.name = 'SattnError';
    this.status = status;
  }
}

function check(status) {
  if (status !== 0) throw new SattnError(status);
}

// 'f32' or 'f64': the type of the first of [name, array, length] that all have to have, and their length.
function typeOf(arrays) {
  const Type = arrays[0][1]?.constructor;
  if (Type !== Float32Array && Type !== Float64Array) throw new TypeError(`${arrays[0][0]} is no Float32Array or Float64Array`);
  for (const [name, array, length] of arrays) {
    if (!(array instanceof Type)) throw new TypeError(`${name} is no ${Type.name}`);
    if (array.length !== length) throw new RangeError(`${name} has ${array.length} elements, not ${length}`);
    if (array.buffer.resizable) throw new TypeError(`${name} may change its size`);
  }
  return [Type, Type === Float32Array ? 'f32' : 'f64'];
}

function size(name, value) {
  if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${name} is no size: ${value}`);
  return value;
}

// A quotient of lengths that has to be whole; 0 / 0 = 0.
function quotient(name, whole, part) {
  const value = part === 0 ? 0 : whole / part;
  if (!Number.isInteger(value) || (part === 0 && whole !== 0)) throw new RangeError(`${name} has ${whole} elements, no multiple of ${part}`);
  return value;
}

/** The softmax of every row of `columns` elements; into y, or a new array. */
function softmax(x, columns, y = x.slice()) {
  const rows = quotient('x', x.length, size('columns', columns));
  const [, type] = typeOf([['x', x, rows * columns], ['y', y, rows * columns]]);
  check(abi.softmax[type](rows, columns, x, columns, y, columns, 0));
  return y;
}

/** Softmax attention of q [B][H][M][D] over k [B][Hk][N][D] and v [B][Hk][N][E]. */
class Attention {
  /** Options: causal (the last query stands opposite the last key), scale, softcap, left, right, threads. */
  constructor({ batch = 1, heads = 1, keyHeads = heads, queries, keys, width, valueWidth = width, causal = false, ...options }) {
    const sizes = { batch, heads, keyHeads, queries, keys, width, valueWidth };
    for (const name in sizes) size(name, sizes[name]);
    this.descriptor = {};
    check(abi.attentionInit(this.descriptor, abi.size.attention, batch, heads, keyHeads, queries, keys, width, valueWidth));
    if (causal) Object.assign(this.descriptor, { right: 0, diagonal: 1 });
    for (const name in options) {
      if (!['scale', 'softcap', 'left', 'right', 'threads'].includes(name)) throw new TypeError(`no option ${name}`);
      this.descriptor[name] = options[name];
    }
    this.lengths = {
      q: batch * heads * queries * width, k: batch * keyHeads * keys * width, v: batch * keyHeads * keys * valueWidth,
      out: batch * heads * queries * valueWidth, stats: batch * heads * queries * 2, lse: batch * heads * queries,
    };
  }

  #with(arrays) {
    const p = { ...this.descriptor };
    for (const [name, data] of Object.entries(arrays)) p[name] = { ...p[name], data };
    return p;
  }

  /** { out, stats, lse } */
  forward(q, k, v) {
    const [Type, type] = typeOf(Object.entries({ q, k, v }).map(([name, array]) => [name, array, this.lengths[name]]));
    const results = {};
    for (const name of ['out', 'stats', 'lse']) results[name] = new Type(this.lengths[name]);
    check(abi.attentionForward[type](this.#with({ q, k, v, ...results })));
    return results;
  }

  /** { dq, dk, dv }: the gradients of <dout, out>, given what forward returned. */
  backward(q, k, v, { out, stats }, dout) {
    const { lengths } = this;
    const given = { q, k, v, out, stats, dout };
    const [Type, type] = typeOf(Object.entries(given).map(([name, array]) => [name, array, lengths[name === 'dout' ? 'out' : name]]));
    const results = { dq: new Type(lengths.q), dk: new Type(lengths.k), dv: new Type(lengths.v) };
    check(abi.attentionBackward[type](this.#with({ ...given, ...results })));
    return results;
  }
}

/** A Gaussian mixture of C components in D dimensions whose values are its keys: the law of an infinite prompt's tokens. */
class Mixture {
  /** logWeight [C], mean [C][D], covariance as its kind in mixture.h has it; kind: zero, diagonal, full, isotropic, cholesky, lowRank. */
  constructor({ logWeight, mean, covariance, kind = covariance ? 'diagonal' : 'zero', rank = 0 }) {
    if (!Object.hasOwn(kinds, kind)) throw new TypeError(`no kind of covariance: ${kind}`);
    const components = logWeight.length;
    const width = quotient('mean', mean.length, components);
    const square = width * width;
    const each = [0, width, square, 1, square, width * (1 + size('rank', rank))][kinds[kind]];
    const arrays = [['logWeight', logWeight, components], ['mean', mean, components * width]];
    if (kind !== 'zero') arrays.push(['covariance', covariance, components * each]);
    [this.Type, this.type] = typeOf(arrays);
    Object.assign(this, { logWeight, mean, covariance, kind, rank, components, width, each });
  }

  #prepare(tilt) {
    const { components, width, kind, rank, each } = this;
    const queries = quotient('tilt', tilt.length, width);
    typeOf([['mean', this.mean, components * width], ['tilt', tilt, queries * width]]);
    const p = {};
    check(abi.mixtureInit(p, abi.size.mixture, 1, queries, components, width, 0, kinds[kind]));
    if (kind === 'lowRank') Object.assign(p, { rank, covariance_batch: components * each });
    Object.assign(p, { tilt, log_weight: this.logWeight, mean: this.mean, covariance: kind === 'zero' ? null : this.covariance });
    return [p, queries];
  }

  /** { out [M][D], cgf [M], stats [M][2] } for tilted queries [M][D] */
  forward(tilt) {
    const [p, queries] = this.#prepare(tilt);
    const { Type, width } = this;
    const results = { out: new Type(queries * width), cgf: new Type(queries), stats: new Type(2 * queries) };
    check(abi.mixtureForward[this.type]({ ...p, ...results }));
    return results;
  }

  /** { dtilt, dlogWeight, dmean, dcovariance }: the gradients of <dout, out>, given what forward returned. */
  backward(tilt, { out, stats }, dout) {
    const [p, queries] = this.#prepare(tilt);
    const { Type, width, components, each, kind } = this;
    typeOf([['tilt', tilt, queries * width], ['out', out, queries * width], ['stats', stats, 2 * queries], ['dout', dout, queries * width]]);
    const dtilt = new Type(queries * width);
    const dlogWeight = new Type(components);
    const dmean = new Type(components * width);
    const dcovariance = kind === 'zero' ? null : new Type(components * each);
    check(abi.mixtureBackward[this.type]({ ...p, out, stats, dout, dtilt, dlog_weight: dlogWeight, dmean, dcovariance }));
    return { dtilt, dlogWeight, dmean, dcovariance };
  }
}

module.exports = { softmax, Attention, Mixture, SattnError, version: abi.versionString };
