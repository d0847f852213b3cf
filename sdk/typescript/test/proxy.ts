import { connect, createServer, type Server as TcpServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";

/** A TCP proxy that closes each connection after a number of response bytes. */
export class Proxy {
  readonly #server: TcpServer;
  readonly #sockets = new Set<Socket>();
  /** Returns the byte limit of the next connection. */
  byteLimit: () => number = () => Infinity;
  /** Number of connections so far. */
  connections = 0;

  private constructor(target: URL) {
    this.#server = createServer((reader) => {
      this.connections++;
      let remaining = this.byteLimit();
      const server = connect(Number(target.port), target.hostname);
      for (const socket of [reader, server]) {
        this.#sockets.add(socket);
        socket.on("error", () => socket.destroy());
        socket.on("close", () => {
          this.#sockets.delete(socket);
          reader.destroy();
          server.destroy();
        });
      }
      reader.on("data", (bytes) => void server.write(bytes));
      server.on("data", (bytes) => {
        const forwarded = bytes.subarray(0, remaining);
        remaining -= forwarded.length;
        // The bytes have to be flushed before the connection is closed.
        reader.write(forwarded, () => {
          if (remaining <= 0) reader.destroy();
        });
      });
    });
  }

  /** Starts a proxy in front of a server. */
  static async start(target: string): Promise<Proxy> {
    const proxy = new Proxy(new URL(target));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Closes the next connection after a number of bytes, and no later one. */
  closeNextAfter(bytes: number): void {
    this.byteLimit = () => {
      this.byteLimit = () => Infinity;
      return bytes;
    };
  }

  /** Closes all connections. */
  closeAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.closeAll();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
