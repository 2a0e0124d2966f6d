/** What was asked of turns in Redis, of many gateways, and of the proof. */
export const REDIS_ITEMS: Record<string, string> = {
  'RED-01': 'the suite of every turn log passes with `redis` and with `ioredis`',
  'RED-02': 'a paused writer that wakes up cannot write into a turn that another has',
  'RED-03': 'stop and answer reach the writer from any process, the first answer wins',
  'RED-04': 'in a cluster, with both clients',
  'RED-05': 'every key has an end; what is kept is bounded',
  'RED-06': 'Redis away: nothing unlogged is sent, writers catch up',
  'RED-07': 'Redis away: new turns get a 503 that says so',
  'RED-08': 'connections cut in mid-byte: nothing lost, nothing twice',
  'RED-09':
    'Redis back with less than it had: the tail is written again, or the turn fails clearly',
  'GWS-01': 'any gateway serves any viewer, from its cursor',
  'GWS-02': 'the same message sent to two gateways is asked once',
  'GWS-03': 'stop and answer at any gateway',
  'GWS-04': 'a gateway dies: another goes on with its turn where the agent can',
  'GWS-05': 'where it cannot: `lost`, in clear words, within the lease',
  'GWS-06': 'a gateway that ends hands its turns over',
  'GWS-07': 'a viewer elsewhere keeps a turn from being stopped',
  'GWS-08': 'history at one, resume at another: the answer is there',
  'GWS-09': 'the compose file and the nginx configuration, run',
  'PRF-01': '200 faults at random: every viewer has what the agent said',
  'PRF-02': 'malformed frames into every decoder and translator, raw bytes into every route',
};
