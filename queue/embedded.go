package queue

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// embedded is a JetStream server in this process that owns a directory.
type embedded struct {
	srv    *server.Server
	lock   *os.File
	dir    string
	client Client
}

// startEmbedded opens the store in dir. Every write is fsynced before it is acknowledged: JetStream's default
// of two minutes lost the stream's definition itself in a power cut.
func startEmbedded(ctx context.Context, o Options, log *zap.Logger) (*embedded, error) {
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	e := &embedded{lock: lock, dir: o.Dir}
	if err := e.start(ctx, o, log); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *embedded) start(ctx context.Context, o Options, log *zap.Logger) error {
	token, err := randomToken()
	if err != nil {
		return err
	}
	opts, err := serverOptions(o, token)
	if err != nil {
		return err
	}
	if e.srv, err = server.NewServer(opts); err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	fatal := make(chan string, 1)
	e.srv.SetLoggerV2(serverLog{log.WithOptions(zap.AddCallerSkip(1)).Named("nats").Sugar(), fatal}, false, false, false)
	e.srv.Start()
	if err := awaitReady(ctx, e.srv, fatal); err != nil {
		return err
	}
	e.client = Client{URL: e.srv.ClientURL(), Token: token, PID: os.Getpid(), Started: time.Now().UTC()}
	return writeClient(e.dir, e.client)
}

func serverOptions(o Options, token string) (*server.Options, error) {
	host, port := "127.0.0.1", server.RANDOM_PORT
	if o.Listen != "" {
		h, p, err := net.SplitHostPort(o.Listen)
		if err != nil {
			return nil, fmt.Errorf("parse queue listen address: %w", err)
		}
		if host = h; p != "0" {
			if port, err = strconv.Atoi(p); err != nil {
				return nil, fmt.Errorf("parse queue listen address: %w", err)
			}
		}
	}
	return &server.Options{
		ServerName: "tailrace", Host: host, Port: port, Authorization: token,
		NoSigs: true, NoSystemAccount: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true,
		JetStreamMaxStore: maxStore(o), JetStreamMaxMemory: 64 << 20,
		MaxPayload: MaxPayload, MaxControlLine: 4096, WriteDeadline: 30 * time.Second,
	}, nil
}

// maxStore is explicit: the server's own default is three quarters of what is free today, and shrinks as the
// disk fills. It has room for every table's limit, and for what widen gives beyond it, so that what stops a table is
// its own.
func maxStore(o Options) int64 {
	dirs, _ := filepath.Glob(filepath.Join(o.Dir, "jetstream", "*", "streams", streamPrefix+"*"))
	return int64(max(o.Logs, len(dirs), leastLogs)+1) * (o.MaxBytes + o.MaxBytes/2 + o.LettersMaxBytes)
}

// awaitReady waits until the store is recovered and clients are let in. After a kill every block is read
// again, about a second per GiB, so there is no limit here but the caller's.
func awaitReady(ctx context.Context, srv *server.Server, fatal <-chan string) error {
	for !srv.ReadyForConnections(50 * time.Millisecond) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("await server: %w", context.Cause(ctx))
		case what := <-fatal:
			return fmt.Errorf("start server: %s", what)
		default:
		}
	}
	select {
	case what := <-fatal:
		return fmt.Errorf("start server: %s", what)
	default:
		return nil
	}
}

func (e *embedded) close() error {
	if e.srv != nil {
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
	}
	if c, err := ReadClient(e.dir); err == nil && c.PID == os.Getpid() {
		_ = os.Remove(filepath.Join(e.dir, clientName)) // a stale file only costs the next command a try
	}
	return e.lock.Close()
}

// health says what the store itself complains about. Stream information stays green on a full disk; only this
// tells.
func (e *embedded) health() error {
	if h := e.srv.Healthz(&server.HealthzOptions{}); h.StatusCode != 200 {
		return fmt.Errorf("queue is unhealthy: %s", h.Error)
	}
	return nil
}

func randomToken() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// serverLog brings the server's lines into the program's log. The server means to end the process after
// Fatalf; embedded it must not, so the reason goes to whoever waits for the start.
type serverLog struct {
	log   *zap.SugaredLogger
	fatal chan<- string
}

func (l serverLog) Noticef(format string, v ...any) { l.log.Debugf(format, v...) }
func (l serverLog) Warnf(format string, v ...any)   { l.log.Warnf(format, v...) }
func (l serverLog) Errorf(format string, v ...any)  { l.log.Errorf(format, v...) }
func (l serverLog) Debugf(format string, v ...any)  { l.log.Debugf(format, v...) }
func (l serverLog) Tracef(format string, v ...any)  { l.log.Debugf(format, v...) }

func (l serverLog) Fatalf(format string, v ...any) {
	l.log.Errorf(format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
