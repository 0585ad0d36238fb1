package embedded

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/queue/conn"
)

// Options set where the store is and how much the logs in it may take.
type Options struct {
	Dir    string
	Listen string // host:port for the commands and the nats tool; "" = a random loopback port

	MaxBytes int64 // of each log
	Logs     int   // how many logs are expected

	Command bool // not a daemon: it leaves the store to a daemon that waits for it

	CheckEvery time.Duration                    // between two looks of Run
	Volume     func(dir string) (Volume, error) // asks the file system of Dir
}

// Server is a JetStream server in this process that owns a directory.
type Server struct {
	opts  Options
	locks locks
	disk  *DiskWatch
	log   *zap.Logger

	mu     sync.Mutex     // covers the fields below: Reopen replaces the server while others use it
	srv    *server.Server // nil while there is none
	client ClientFile
	unread []unread // folders of streams that could not be read at the last start
	port   int      // of the server that ran before Reopen; 0 = any
	failed error    // why the store could not be opened again; nil while it is open

	// Run alone uses these.
	reopenPause time.Duration // before the store is opened again after another error than a full volume
	reopenAfter time.Time
}

// Start locks Options.Dir and opens the store in it; if the volume is full it deletes the reserve
// first. Every write is fsynced before it is acknowledged: with JetStream's default, an fsync every
// two minutes, a power cut can lose even the definition of a stream. disk is the watch of the
// store's volume. A daemon waits for a command that has the store open. Errors: ErrLocked,
// ErrNoSpace.
func Start(ctx context.Context, o Options, disk *DiskWatch, log *zap.Logger) (*Server, error) {
	locked, err := lockStore(ctx, o, log)
	if err != nil {
		return nil, err
	}
	token, err := randomToken()
	if err != nil {
		return nil, errors.Join(err, locked.release())
	}
	e := &Server{opts: o, locks: locked, disk: disk, log: log, client: ClientFile{Token: token}}
	if err := e.startWithReserve(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// start starts a server on the locked store and writes the client file.
func (e *Server) start(ctx context.Context) error {
	if err := restoreNames(e.opts.Dir, noneOpened, e.log); err != nil { // after a kill
		return err
	}
	if err := settleLeftovers(e.opts.Dir, e.log); err != nil {
		return err
	}
	if err := keepNames(e.opts.Dir, e.log); err != nil {
		return err
	}
	opts, err := serverOptions(e.opts, e.client.Token, e.port)
	if err != nil {
		return err
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("make server: %w", err)
	}
	fatal := make(chan string, 1)
	srv.SetLoggerV2(newServerLog(e.opts, e.log, fatal), false, false, false)
	srv.Start()
	client := ClientFile{Token: e.client.Token, PID: os.Getpid(), Started: time.Now().UTC(), Command: e.opts.Command}
	var unread []unread
	if err = awaitReady(ctx, srv, fatal); err == nil {
		unread, err = e.settleOpened(srv)
	}
	if err == nil {
		client.URL = srv.ClientURL() // the port is known only now
		err = writeClientFile(e.opts.Dir, client)
	}
	if err != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
		return errors.Join(err, restoreNames(e.opts.Dir, noneOpened, e.log))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.srv, e.client, e.unread = srv, client, unread
	if addr, ok := srv.Addr().(*net.TCPAddr); ok {
		e.port = addr.Port
	}
	return nil
}

// settleOpened restores what the server has removed of streams that it has not opened. It returns
// the folders that cannot be read now.
func (e *Server) settleOpened(srv *server.Server) ([]unread, error) {
	opened, err := openedBy(srv)
	if err != nil {
		return nil, err
	}
	if err := restoreNames(e.opts.Dir, opened, e.log); err != nil {
		return nil, err
	}
	return unreadFolders(e.opts.Dir, opened)
}

// startWithReserve opens the store. If that fails because the volume is full, it deletes the
// reserve and tries again. It deletes no other file: only the operator can decide about those.
func (e *Server) startWithReserve(ctx context.Context) error {
	err := e.start(ctx)
	if err == nil {
		return nil
	}
	v, verr := e.opts.Volume(e.opts.Dir)
	if verr != nil || v.Available > uint64(reserveSize(v)) {
		return err
	}
	if dropReserve(e.opts.Dir) {
		e.log.Error("the volume of the queue is full: its reserve was deleted, free some space",
			zap.String("dir", e.opts.Dir))
		if err = e.start(ctx); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", ErrNoSpace, err)
}

// ErrNoSpace means that the volume of the embedded store is full, so that not even the store can be
// opened.
var ErrNoSpace = errors.New("no room on the volume of the queue: " +
	"free some, or enlarge it; never delete files of the queue")

// Client returns how other processes reach the server.
func (e *Server) Client() ClientFile {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.client
}

// server returns the running server, nil while there is none.
func (e *Server) server() *server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.srv
}

// stop ends the server and keeps the store locked.
func (e *Server) stop() {
	e.mu.Lock()
	srv := e.srv
	e.srv = nil
	e.mu.Unlock()
	if srv != nil {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
}

// InProcessConn connects to the running server. Clients call it for each reconnect.
func (e *Server) InProcessConn() (net.Conn, error) {
	srv := e.server()
	if srv == nil {
		return nil, errClosed
	}
	return srv.InProcessConn()
}

var errClosed = errors.New("the store of the queue is closed: it is being opened again")

// serverOptions returns the NATS server's options. It listens on port if Options.Listen names none;
// 0 = any.
func serverOptions(o Options, token string, port int) (*server.Options, error) {
	host := "127.0.0.1"
	if port == 0 {
		port = server.RANDOM_PORT
	}
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
		JetStreamMaxStore: maxStore, JetStreamMaxMemory: 64 << 20,
		MaxPayload: conn.MaxPayload, MaxControlLine: 4096, WriteDeadline: 30 * time.Second,
	}, nil
}

// maxStore is the server's limit of all streams together: none. The server refuses a stream whose
// own limit would go beyond it, however empty the volume is, and tables may be found while it runs.
// The room on the volume is watched by Disk, and each log has its own limit. The server's default
// would be three quarters of the free space at the start, which shrinks as the disk fills.
const maxStore = 1 << 60

// awaitReady waits until the store is recovered and clients may connect. After a kill the server
// reads every block again, about a second per GiB, so only ctx limits the time.
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

// Close ends the server, removes its client file and unlocks the store.
func (e *Server) Close() error {
	e.locks.leave()
	e.stop()
	if c, err := ReadClientFile(e.opts.Dir); err == nil && c.PID == os.Getpid() {
		_ = os.Remove(filepath.Join(e.opts.Dir, clientFileName)) // a stale file is harmless: OpenClient tries again
	}
	return e.locks.release()
}

// Health returns an error when the store reports one. A full disk shows only here: information
// about streams is still answered without an error.
func (e *Server) Health(ctx context.Context) error {
	srv := e.server()
	if srv == nil {
		return errClosed
	}
	return awaitHealthy(ctx, func() *server.HealthStatus { return healthOf(srv) })
}

// healthOf returns the health of a server. A stream that it has not opened makes it no less
// healthy: that halts the stream's table (WhyUnopened), and all others go on.
func healthOf(srv *server.Server) *server.HealthStatus {
	h := srv.Healthz(&server.HealthzOptions{Details: true})
	h.Errors = slices.DeleteFunc(h.Errors, func(e server.HealthzError) bool {
		return e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "could not be recovered")
	})
	switch {
	case len(h.Errors) > 0:
		h.Error = h.Errors[0].Error
	case h.Error == "":
		h.StatusCode = http.StatusOK
	}
	return h
}

// awaitHealthy returns nil once ask reports a healthy server. "Not ready for connections" is asked
// again for healthTimeout, because the server waits only a millisecond for its own listener, too
// short on a busy machine.
func awaitHealthy(ctx context.Context, ask func() *server.HealthStatus) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	for {
		h := ask()
		switch {
		case h.StatusCode == http.StatusOK:
			return nil
		case h.StatusCode != http.StatusInternalServerError, failure.Pause(ctx, conn.LeastPause) != nil:
			return fmt.Errorf("queue is unhealthy: %s", h.Error)
		}
	}
}

// healthTimeout is how long a server may need until it is ready for connections.
const healthTimeout = 5 * time.Second

func randomToken() (string, error) {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// serverLog writes the server's lines into the program's log. The server expects Fatalf to end the
// process; here it passes the reason to awaitReady instead.
type serverLog struct {
	log *zap.SugaredLogger
	// Levels of the server's warnings and errors. In a command both are Debug: after a kill the
	// server reports what it repairs, and what it cannot repair the command reports itself.
	warn, error zapcore.Level
	fatal       chan<- string
}

func newServerLog(o Options, log *zap.Logger, fatal chan<- string) serverLog {
	l := serverLog{log.WithOptions(zap.AddCallerSkip(1)).Named("nats").Sugar(), zap.WarnLevel, zap.ErrorLevel, fatal}
	if o.Command {
		l.warn, l.error = zap.DebugLevel, zap.DebugLevel
	}
	return l
}

func (l serverLog) Noticef(format string, v ...any) { l.log.Debugf(format, v...) }
func (l serverLog) Warnf(format string, v ...any)   { l.log.Logf(l.warn, format, v...) }
func (l serverLog) Errorf(format string, v ...any)  { l.log.Logf(l.error, format, v...) }
func (l serverLog) Debugf(format string, v ...any)  { l.log.Debugf(format, v...) }
func (l serverLog) Tracef(format string, v ...any)  { l.log.Debugf(format, v...) }

func (l serverLog) Fatalf(format string, v ...any) {
	l.log.Logf(l.error, format, v...)
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default:
	}
}
