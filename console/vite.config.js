import { defineConfig } from "vite";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2022",
    modulePreload: { polyfill: false },
    // Nothing inlined: the page's policy allows no inline script or style.
    assetsInlineLimit: 0,
    rolldownOptions: {
      output: {
        entryFileNames: "assets/app-[hash].js",
        chunkFileNames: "assets/[name]-[hash].js",
        assetFileNames: "assets/[name]-[hash][extname]",
      },
    },
  },
  // `npx vite` while working on the page: a host at this address answers the websocket.
  server: { proxy: { "/ws": { target: "ws://127.0.0.1:4600", ws: true } } },
});
