// ferretdb-sqlite is FerretDB with its SQLite backend: a server of MongoDB's protocol for tests, where no mongod is
// installed. It listens on 127.0.0.1 and on a Unix socket, keeps its data in one folder, reports nothing to anybody
// (an embedded FerretDB has no telemetry), and ends when it is told to.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/FerretDB/FerretDB/build/version"
	"github.com/FerretDB/FerretDB/ferretdb"
)

const module = "github.com/FerretDB/FerretDB"

func main() {
	show := flag.Bool("version", false, "print the version and end")
	data := flag.String("data", "", "folder of the data")
	port := flag.Uint("port", 0, "port on 127.0.0.1")
	socket := flag.String("socket", "", "path of a Unix socket")
	cert := flag.String("tls-cert", "", "certificate (PEM): the port then speaks TLS only")
	key := flag.String("tls-key", "", "the certificate's key (PEM)")
	ca := flag.String("tls-ca", "", "authority (PEM) of the clients' certificates, where they must have one")
	flag.Parse()

	// FerretDB does not know its own version when it is embedded; the build does.
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dependency := range info.Deps {
			if dependency.Path == module {
				version.Get().Version = dependency.Version
			}
		}
	}
	if *show {
		fmt.Println("ferretdb-sqlite", version.Get().Version)
		return
	}

	// One that was killed leaves its socket behind, which would be in the way.
	if *socket != "" {
		_ = os.Remove(*socket)
	}

	address := fmt.Sprintf("127.0.0.1:%d", *port)
	listener := ferretdb.ListenerConfig{TCP: address, Unix: *socket}
	if *cert != "" {
		listener = ferretdb.ListenerConfig{
			TLS: address, Unix: *socket, TLSCertFile: *cert, TLSKeyFile: *key, TLSCAFile: *ca,
		}
	}
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  listener,
		Handler:   "sqlite",
		SQLiteURL: "file:" + *data + "/",
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb-sqlite:", err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := server.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb-sqlite:", err)
		os.Exit(1)
	}
}
