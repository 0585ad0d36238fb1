package conn

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"
)

// guarded starts a server that wants a user and a password.
func guarded(t *testing.T, o *server.Options) *server.Server {
	t.Helper()
	srv, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(srv.Shutdown)
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return srv
}

// TestWrongPasswordIsTriedUntilItIsRight: a server that refuses the password again and again keeps
// no client from connecting once the password is right, and a password that was replaced is read
// again for each try.
func TestWrongPasswordIsTriedUntilItIsRight(t *testing.T) {
	for what, user := range map[string]func(secret string) *url.Userinfo{
		"password": func(secret string) *url.Userinfo { return url.UserPassword("me", secret) },
		"token":    url.User,
	} {
		t.Run(what, func(t *testing.T) {
			options := func(port int, secret string) *server.Options {
				o := &server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true}
				if what == "token" {
					o.Authorization = secret
				} else {
					o.Username, o.Password = "me", secret
				}
				return o
			}
			srv := guarded(t, options(-1, "one"))
			address := srv.Addr().String()
			var secret atomic.Pointer[string]
			var read atomic.Int64
			set := func(to string) { secret.Store(&to) }
			now := func() string {
				read.Add(1)
				return (&url.URL{Scheme: "nats", Host: address, User: user(*secret.Load())}).String()
			}
			set("one")
			c, err := Dial(t.Context(), Options{URL: now(), URLNow: now, AckTimeout: time.Second}, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if err := srv.ReloadOptions(options(srv.Addr().(*net.TCPAddr).Port, "two")); err != nil {
				t.Fatal(err)
			}
			refused := read.Load() + 6 // the library gives up after the second refusal
			until(t, "the password is refused again and again", func() bool { return read.Load() >= refused })
			if c.NC.IsClosed() || c.NC.IsConnected() {
				t.Fatalf("the connection is %s", c.NC.Status())
			}
			set("two")
			until(t, "the connection is back", c.NC.IsConnected)
			if err := c.NC.FlushTimeout(time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
}

// until waits for an observed fact.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestConnectionThatIsGivenUpIsReported: the client library closes the connection for good where
// the server ends it with an error that it does not know. Nothing would ever connect again, so that
// must end the process.
func TestConnectionThatIsGivenUpIsReported(t *testing.T) {
	srv := guarded(t, &server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	clients := make(chan net.Conn, 10)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			behind, err := net.Dial("tcp", srv.Addr().String())
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(behind, client) }()
			go func() { _, _ = bufio.NewReader(behind).WriteTo(client) }()
			clients <- client
		}
	}()
	o := Options{URL: "nats://" + listener.Addr().String(), AckTimeout: time.Second}
	c, err := Dial(t.Context(), o, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (<-clients).Write([]byte("-ERR 'Account Limits Changed'\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := c.GivenUp(t.Context()); !errors.Is(err, ErrGivenUp) {
		t.Errorf("the closed connection is reported as %v", err)
	}
	closed, err := Dial(t.Context(), o, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	closed.Close() // by ourselves
	select {
	case <-closed.closed:
		t.Error("a connection that was closed on purpose counts as given up")
	default:
	}
}
