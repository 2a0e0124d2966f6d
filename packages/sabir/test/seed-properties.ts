/** In CI every property draws the same cases, so that a run can be repeated. Elsewhere each run draws new ones. */
import fc from 'fast-check';

if (process.env.CI) fc.configureGlobal({ seed: 20_261_118 });
