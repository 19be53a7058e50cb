// SPDX-License-Identifier: BSD-2-Clause
'use strict';
const assert = require('node:assert');
const test = require('node:test');
const sattn = require('..');

const near = (value, expected, by) => assert.ok(Math.abs(value - expected) < by, `${value} ${expected}`);
const wave = (n, f) => Float64Array.from({ length: n }, (_, i) => Math.sin(f * (i + 1)));
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

test('softmax', () => {
  assert.deepStrictEqual(sattn.softmax(new Float32Array([0, 0, -Infinity]), 3), new Float32Array([0.5, 0.5, 0]));
  assert.throws(() => sattn.softmax(new Float32Array(3), 2), RangeError);
  assert.throws(() => sattn.softmax(new Float32Array(2), 2, new Float64Array(2)), TypeError);
});

test('the mixture of the README', () => {
  const mixture = new sattn.Mixture({
    logWeight: new Float64Array([-0.7, -0.7]), mean: new Float64Array([3, 0, 0, 3]), covariance: new Float64Array(4).fill(1),
  });
  const u = new Float64Array([0.5, 0.2]);
  const r = mixture.forward(u);
  const g = mixture.backward(u, r, new Float64Array([1, 0]));
  near(r.out[0], 2.632849, 5e-7);
  near(r.out[1], 1.067151, 5e-7);
  near(r.cgf[0], 1.286154, 5e-7);
  near(g.dmean[0], 1.0192, 5e-7);
});

test('every kind of the covariance 4 I', () => {
  const values = { diagonal: [4, 4], full: [4, 0, 0, 4], isotropic: [4], cholesky: [2, 0, 0, 2], lowRank: [3, 4, 1, 0] };
  for (const [kind, covariance] of Object.entries(values)) {
    const mixture = new sattn.Mixture({
      logWeight: new Float32Array(1), mean: new Float32Array([1, 2]), covariance: new Float32Array(covariance), kind, rank: 1,
    });
    const u = new Float32Array([0.5, -1]);
    const r = mixture.forward(u);
    assert.deepStrictEqual([...r.out], [3, -2]);
    assert.deepStrictEqual([...mixture.backward(u, r, new Float32Array([1, 1])).dtilt], [4, 4]);
  }
});

test('slopes of attention', () => {
  const problem = new sattn.Attention({ heads: 2, keyHeads: 1, queries: 2, keys: 3, width: 2, valueWidth: 1, causal: true });
  const [q, k, v, dout] = [wave(8, 1), wave(6, 2), wave(3, 3), wave(4, 5)];
  const { dk } = problem.backward(q, k, v, problem.forward(q, k, v), dout);
  for (let i = 0; i < k.length; i++) {
    const side = (by) => {
      const moved = k.slice();
      moved[i] += by;
      return dot(problem.forward(q, moved, v).out, dout);
    };
    near((side(1e-5) - side(-1e-5)) / 2e-5, dk[i], 1e-9);
  }
});

test('refusals', () => {
  const one = new Float32Array(1);
  const problem = new sattn.Attention({ queries: 1, keys: 1, width: 1, scale: NaN });
  assert.throws(() => problem.forward(one, one, one), (e) => e instanceof sattn.SattnError && e.status === -6 && e.message.length > 5);
  assert.throws(() => new sattn.Attention({ heads: 3, keyHeads: 2, queries: 1, keys: 1, width: 1 }), sattn.SattnError);
  assert.throws(() => new sattn.Attention({ queries: 1.5, keys: 1, width: 1 }), RangeError);
  assert.throws(() => new sattn.Attention({ queries: 1, keys: 1, width: 1, scael: 1 }), TypeError);
});
