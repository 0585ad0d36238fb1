package bigtable

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandbox "github.com/tailrace-cdc/replicator/sandbox/bigtable"
	"github.com/tailrace-cdc/replicator/sink/bigtable/tableschema"
	"github.com/tailrace-cdc/replicator/transform"
)

func TestMain(m *testing.M) {
	if os.Getenv(nullServerEnv) != "" {
		serveNothing()
		return
	}
	goleak.VerifyTestMain(m)
}

// fate is what the front does with one CheckAndMutateRow.
type fate int

const (
	pass   fate = iota
	refuse      // not applied, UNAVAILABLE
	lose        // applied, but the answer is UNAVAILABLE
	park        // UNAVAILABLE now; applied when deliver is called: the call that outlives its client
	reject      // INVALID_ARGUMENT
	unsay       // UNKNOWN, as a broken server would
	lack        // NOT_FOUND, as if the table was not there
)

// front stands before the emulator and makes conditional writes fail as they do on bad days.
type front struct {
	addr string

	mu     sync.Mutex
	choose func(n int) fate // n counts from 0
	calls  int
	reads  int
	lacks  int // how many reads are still answered with NOT_FOUND
	breaks int // how many reads still end with NOT_FOUND, behind their rows
	parked []func()
}

func newFront(t testing.TB) *front {
	t.Helper()
	f := &front{}
	srv, err := bttest.NewServer("127.0.0.1:0", grpc.UnaryInterceptor(f.intercept), grpc.StreamInterceptor(f.lack),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	f.addr = srv.Addr
	return f
}

func (f *front) fates(choose func(n int) fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choose, f.calls = choose, 0
}

func (f *front) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// deliver lets every parked call arrive, in the order they were sent.
func (f *front) deliver() {
	f.mu.Lock()
	late := f.parked
	f.parked = nil
	f.mu.Unlock()
	for _, apply := range late {
		apply()
	}
}

// lack answers reads as if there was no table.
func (f *front) lack(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	f.mu.Lock()
	f.reads++
	lacks := f.lacks > 0
	f.lacks = max(0, f.lacks-1)
	breaks := !lacks && f.breaks > 0
	if breaks {
		f.breaks--
	}
	f.mu.Unlock()
	if lacks {
		return status.Error(codes.NotFound, "injected")
	}
	err := handle(srv, ss)
	if breaks && err == nil {
		return status.Error(codes.NotFound, "injected behind the rows")
	}
	return err
}

func (f *front) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any,
	error) {
	if _, ok := req.(*btpb.CheckAndMutateRowRequest); !ok {
		return handle(ctx, req)
	}
	f.mu.Lock()
	doom := pass
	if f.choose != nil {
		doom = f.choose(f.calls)
	}
	f.calls++
	f.mu.Unlock()
	switch doom {
	case refuse:
		return nil, status.Error(codes.Unavailable, "injected")
	case reject:
		return nil, status.Error(codes.InvalidArgument, "injected")
	case unsay:
		return nil, status.Error(codes.Unknown, "injected")
	case lack:
		return nil, status.Error(codes.NotFound, "injected")
	case lose:
		if _, err := handle(ctx, req); err != nil {
			return nil, err
		}
		return nil, status.Error(codes.Unavailable, "injected after apply")
	case park:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.parked = append(f.parked, func() { _, _ = handle(context.WithoutCancel(ctx), req) })
		return nil, status.Error(codes.Unavailable, "injected, will arrive later")
	}
	return handle(ctx, req)
}

// present is the source's clock in the tests; versions count from a day before it.
var present = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func at(v int64) int64 { return present.Add(-24*time.Hour).UnixMilli() + v }

func open(t testing.TB, addr string, change ...func(*Options)) *Client {
	t.Helper()
	o := Options{Project: "p", Instance: "i", Endpoint: addr, Now: func() time.Time { return present }}
	for _, f := range change {
		f(&o)
	}
	c, err := Open(t.Context(), o, zap.NewNop(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	c.newBackOff = func() backoff.BackOff { return backoff.NewConstantBackOff(time.Millisecond) }
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

const target = "products"

var dataTables = []tableschema.Table{{Name: target, Families: []transform.Family{
	{Name: "d", MaxVersions: 1}, {Name: "h", MaxVersions: 5}, {Name: "top", MaxVersions: 1, Aggregate: "max"},
}}}

func createTables(t testing.TB, c *Client) {
	t.Helper()
	if _, err := c.Ensure(t.Context(), tableschema.Tables(dataTables, 7*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// rig is a client of a fresh emulator behind a front.
func rig(t testing.TB, change ...func(*Options)) (*Client, *front) {
	t.Helper()
	f := newFront(t)
	c := open(t, f.addr, change...)
	createTables(t, c)
	return c, f
}

// strict is a client of the sandbox's Bigtable, which holds the service's limits.
func strict(t testing.TB) (*Client, *sandbox.Front) {
	t.Helper()
	f, err := sandbox.Open(sandbox.Options{Addr: "127.0.0.1:0", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	c := open(t, f.Addr())
	createTables(t, c)
	return c, f
}

const cbtemulator = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"

// everyServer runs a test against the emulator in this process, against the sandbox's strict front,
// and against Google's emulator where it is installed.
func everyServer(t *testing.T, test func(t *testing.T, c *Client)) {
	t.Run("sandbox", func(t *testing.T) {
		c, _ := strict(t)
		test(t, c)
	})
	t.Run("bttest", func(t *testing.T) {
		c, _ := rig(t)
		test(t, c)
	})
	t.Run("cbtemulator", func(t *testing.T) {
		if _, err := os.Stat(cbtemulator); err != nil {
			t.Skip("Google's emulator is not installed")
		}
		c := open(t, startEmulator(t))
		createTables(t, c)
		test(t, c)
	})
}

func startEmulator(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	cmd := exec.Command(cbtemulator, "-host", "127.0.0.1", "-port", port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.Contains(line, port) {
		t.Fatalf("emulator said %q: %v", line, err)
	}
	return "127.0.0.1:" + port
}

// mustApply applies a write, which must succeed.
func mustApply(t testing.TB, c *Client, writes ...*transform.Write) {
	t.Helper()
	for _, w := range writes {
		if err := c.Apply(t.Context(), target, w); err != nil {
			t.Fatalf("apply version %d: %v", w.Version, err)
		}
	}
}

// plain is what an application sees: the newest cell of every data column, "row family:qualifier" →
// value.
func plain(t testing.TB, c *Client) map[string]string {
	t.Helper()
	return read(t, c, []View{{"d", 1}, {"h", 1}}, false)
}

// meta is what the guards see: "row family:qualifier@version" → "".
func meta(t testing.TB, c *Client) map[string]string {
	t.Helper()
	return read(t, c, []View{{transform.LiveFamily, 0}, {transform.DeadFamily, 0}}, true)
}

func read(t testing.TB, c *Client, views []View, times bool) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := c.Rows(t.Context(), target, "", "", views, func(r *Row) error {
		for _, cell := range r.Cells {
			name := fmt.Sprintf("%s %s:%s", r.Key, cell.Family, cell.Qualifier)
			if times {
				name += fmt.Sprintf("@%d", cell.Time.UnixMilli()-at(0))
				cell.Value = nil
			}
			got[name] = string(cell.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}
