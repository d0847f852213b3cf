import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const server = process.env["RUNWIRE_URL"] ?? "http://127.0.0.1:7420";

export default defineConfig({
  plugins: [react()],
  resolve: {
    // The console is the SDK's first user and takes its source, so the SDK needs no build of its own here.
    alias: [
      { find: /^@runwire\/client\/react$/, replacement: here("../sdk/typescript/src/react/index.ts") },
      { find: /^@runwire\/client$/, replacement: here("../sdk/typescript/src/index.ts") },
    ],
    // The SDK has a node_modules of its own; two Reacts would break every hook.
    dedupe: ["react", "react-dom"],
  },
  build: {
    // `light-dark()` and nested CSS as they are written, and no polyfills.
    target: ["chrome123", "firefox128", "safari17.5"],
    // Inlined data: URLs would have to be allowed in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // `npm run size` is the gate.
    chunkSizeWarningLimit: 800,
  },
  server: {
    // The server compares a write's origin with the host that was asked for, so the host must stay the browser's.
    proxy: Object.fromEntries(["/v1", "/healthz", "/readyz", "/openapi.json"].map((path) => [path, { target: server, changeOrigin: false, ws: path === "/v1" }])),
    fs: { allow: [here("."), here("../sdk/typescript")] },
  },
  test: {
    environment: "jsdom",
    include: ["test/**/*.test.{ts,tsx}"],
    exclude: ["test/browser/**"],
    restoreMocks: true,
  },
});
