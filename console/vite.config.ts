import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const server = process.env["RUNWIRE_URL"] ?? "http://127.0.0.1:7420";

export default defineConfig({
  plugins: [react()],
  resolve: {
    // The console imports the sources of the SDK, so that the SDK need not be built.
    alias: [
      { find: /^@runwire\/client\/react$/, replacement: here("../sdk/typescript/src/react/index.ts") },
      { find: /^@runwire\/client$/, replacement: here("../sdk/typescript/src/index.ts") },
    ],
    // The SDK has its own node_modules; two copies of React would break every hook.
    dedupe: ["react", "react-dom"],
  },
  build: {
    // Keeps `light-dark()` and nested CSS without polyfills.
    target: ["chrome123", "firefox128", "safari17.5"],
    // Inlined data: URLs would have to be allowed in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // `npm run size` checks the size.
    chunkSizeWarningLimit: 800,
  },
  server: {
    // The server compares the origin of a write with the requested host, so the proxy must keep the host.
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
