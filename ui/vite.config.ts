import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The API server during development: the mock, or the one that CANONYM_URL names.
declare const process: { env: Record<string, string | undefined> };
const target = process.env.CANONYM_URL ?? 'http://127.0.0.1:5179';

export default defineConfig({
  plugins: [svelte()],
  build: {
    // The strict content security policy blocks data: URLs and inline scripts, so nothing is inlined.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    reportCompressedSize: false,
  },
  server: { port: 5178, proxy: { '/api': target, '/health': target } },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
} as never);
