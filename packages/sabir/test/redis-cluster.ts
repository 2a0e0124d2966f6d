/** A real cluster of three masters on loopback, each with a third of the slots. */
import { spawnSync } from 'node:child_process';
import { type RedisServer, startRedis } from './redis-server.ts';

export type RedisCluster = Awaited<ReturnType<typeof startRedisCluster>>;

const SLOTS = 16_384;

/** Runs one command at one node, as an operator would. */
export function atNode({ port }: RedisServer, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync('redis-cli', ['-p', `${port}`, ...args]);
  if (status !== 0) throw new Error(`redis-cli failed: ${stderr}`);
  return stdout.toString().trim();
}

export async function startRedisCluster(size = 3) {
  const settings = ['--cluster-node-timeout', '2000'];
  const nodes: RedisServer[] = [];
  for (let at = 0; at < size; at++) nodes.push(await startRedis({ isCluster: true, settings }));
  const [first, ...others] = nodes as [RedisServer, ...RedisServer[]];
  for (const [at, node] of nodes.entries()) {
    const from = Math.floor((at * SLOTS) / size);
    const to = Math.floor(((at + 1) * SLOTS) / size) - 1;
    atNode(node, 'CLUSTER', 'ADDSLOTSRANGE', `${from}`, `${to}`);
    atNode(node, 'CLUSTER', 'SET-CONFIG-EPOCH', `${at + 1}`);
  }
  for (const { port } of others) atNode(first, 'CLUSTER', 'MEET', '127.0.0.1', `${port}`);
  for (let attempt = 0; !nodes.every((node) => isWhole(node, size)); attempt++) {
    if (attempt > 300) throw new Error('the cluster did not come about');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    nodes,
    port: first.port,
    async stop(): Promise<void> {
      await Promise.all(nodes.map((node) => node.stop()));
    },
  };
}

function isWhole(node: RedisServer, size: number): boolean {
  const info = atNode(node, 'CLUSTER', 'INFO');
  return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${size}`);
}
