// ferretdb-users is FerretDB with its SQLite backend and one user: a server of MongoDB's protocol for tests, where no mongod
// is installed. It listens on 127.0.0.1 and on a Unix socket, asks both for the user's password (SCRAM), keeps its data in
// one folder, reports nothing to anybody, and ends when it is told to.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/FerretDB/FerretDB/build/version"
	"github.com/FerretDB/FerretDB/internal/clientconn"
	"github.com/FerretDB/FerretDB/internal/clientconn/connmetrics"
	"github.com/FerretDB/FerretDB/internal/handler/registry"
	"github.com/FerretDB/FerretDB/internal/util/password"
	"github.com/FerretDB/FerretDB/internal/util/state"
)

const module = "github.com/FerretDB/FerretDB"

func main() {
	show := flag.Bool("version", false, "print the version and end")
	data := flag.String("data", "", "folder of the data")
	login := flag.String("login", "", "file with the first user and its password: NAME:PASSWORD")
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
		fmt.Println("ferretdb-users", version.Get().Version)
		return
	}

	// One that was killed leaves its socket behind, which would be in the way.
	if *socket != "" {
		_ = os.Remove(*socket)
	}

	address := fmt.Sprintf("127.0.0.1:%d", *port)
	listener := &clientconn.NewListenerOpts{TCP: address, Unix: *socket}
	if *cert != "" {
		listener = &clientconn.NewListenerOpts{
			TLS: address, Unix: *socket, TLSCertFile: *cert, TLSKeyFile: *key, TLSCAFile: *ca,
		}
	}
	if err := serve(listener, *data, *login); err != nil {
		fmt.Fprintln(os.Stderr, "ferretdb-users:", err)
		os.Exit(1)
	}
}

// serve does what FerretDB's embeddable package does, with users.
func serve(listener *clientconn.NewListenerOpts, data, login string) error {
	text, err := os.ReadFile(login)
	if err != nil {
		return err
	}
	user, secret, _ := strings.Cut(strings.TrimSpace(string(text)), ":")

	version.Get().Package = "embedded"
	provider, err := state.NewProvider("")
	if err != nil {
		return err
	}
	err = provider.Update(func(s *state.State) {
		s.DisableTelemetry()
		s.TelemetryLocked = true
	})
	if err != nil {
		return err
	}

	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	metrics := connmetrics.NewListenerMetrics()
	handler, closeBackend, err := registry.NewHandler("sqlite", &registry.NewHandlerOpts{
		Logger:        logger,
		ConnMetrics:   metrics.ConnMetrics,
		StateProvider: provider,
		TCPHost:       listener.TCP,
		SQLiteURL:     "file:" + data + "/",
		// Made with the first start: this database is where users are kept.
		SetupDatabase: "admin",
		SetupUsername: user,
		SetupPassword: password.WrapPassword(secret),
		TestOpts: registry.TestOpts{
			CappedCleanupPercentage: 10,
			BatchSize:               100,
			EnableNewAuth:           true,
		},
	})
	if err != nil {
		return err
	}
	defer closeBackend()

	listener.Mode = clientconn.NormalMode
	listener.Metrics = metrics
	listener.Handler = handler
	listener.Logger = logger
	listening, err := clientconn.Listen(listener)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	listening.Run(ctx)
	return nil
}
