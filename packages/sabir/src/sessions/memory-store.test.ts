import { describeSessionStore } from '../../test/session-storage-conformance.ts';
import { memorySessionStore } from './memory-store.ts';

describeSessionStore('memory', (options) => ({ store: memorySessionStore(options) }));
