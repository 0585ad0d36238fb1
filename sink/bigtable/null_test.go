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
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"

	"github.com/tailrace-cdc/replicator/sink/bigtable/guard"
	"github.com/tailrace-cdc/replicator/transform"
)

// nullServerEnv makes the test binary a server that acknowledges every unary call without looking
// at it, so that a benchmark measures the client's process alone.
const nullServerEnv = "TAILRACE_NULL_SERVER"

// nothing is a codec that neither reads nor writes: an empty CheckAndMutateRowResponse has no
// bytes.
type nothing struct{}

func (nothing) Name() string                         { return "proto" }
func (nothing) Marshal(any) (mem.BufferSlice, error) { return nil, nil }
func (nothing) Unmarshal(mem.BufferSlice, any) error { return nil }

func serveNothing() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = fmt.Fprintln(os.Stdout, l.Addr())
	answer := func(_ any, s grpc.ServerStream) error {
		if err := s.RecvMsg(nil); err != nil {
			return err
		}
		return s.SendMsg(nil)
	}
	_ = grpc.NewServer(grpc.ForceServerCodecV2(nothing{}), grpc.UnknownServiceHandler(answer)).Serve(l)
}

func startNullServer(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), nullServerEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// measure runs f for b.N rows in n goroutines and reports the process's CPU time a row.
func measure(b *testing.B, n int, f func(i int)) {
	b.ReportAllocs()
	b.ResetTimer()
	before := cpuTime()
	var all sync.WaitGroup
	for g := range n {
		all.Go(func() {
			for i := g; i < b.N; i += n {
				f(i)
			}
		})
	}
	all.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/row")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// benchWrite is an item of five attributes of 100 bytes in a row of its own.
func benchWrite(i int) *transform.Write {
	key := fmt.Sprintf("user#%08d", i)
	w := own(key, 1)
	w.Rows[0].Left = false
	for _, q := range [...]string{"name", "price", "stock", "tags", "updated"} {
		w.Rows[0].Cells = append(w.Rows[0].Cells, transform.Cell{Family: "d", Qualifier: []byte(q), Value: benchValue})
	}
	return w
}

var benchValue = make([]byte, 100)

func benchWrites() []*transform.Write {
	writes := make([]*transform.Write, 4096)
	for i := range writes {
		writes[i] = benchWrite(i)
	}
	return writes
}

func BenchmarkApply(b *testing.B) {
	addr := startNullServer(b)
	writes := benchWrites()
	for _, n := range []int{16, 64, 256, 2048} {
		b.Run(fmt.Sprintf("lanes=%d", n), func(b *testing.B) {
			c := open(b, addr)
			measure(b, n, func(i int) {
				if err := c.Apply(context.Background(), target, writes[i%len(writes)]); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkLibraryApply is the same write through Google's client: what building requests ourselves
// saves.
func BenchmarkLibraryApply(b *testing.B) {
	conn, err := grpc.NewClient("passthrough:///"+startNullServer(b), append(dialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		b.Fatal(err)
	}
	client, err := bigtable.NewClientWithConfig(b.Context(), "p", "i", bigtable.ClientConfig{
		MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true}, option.WithGRPCConn(conn))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = client.Close() })
	table, writes := client.Open(target), benchWrites()
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("lanes=%d", n), func(b *testing.B) {
			measure(b, n, func(i int) {
				ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
				defer cancel()
				if err := table.Apply(ctx, string(writes[i%len(writes)].Rows[0].Key),
					libraryMutation(writes[i%len(writes)])); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

func libraryMutation(w *transform.Write) *bigtable.Mutation {
	q, v := string(exclusiveQualifier), bigtable.Timestamp(w.Version*1000)
	atVersion := func(family string) bigtable.Filter {
		return bigtable.ChainFilters(bigtable.ColumnRangeFilter(family, q, q+"\x00"),
			bigtable.TimestampRangeFilterMicros(v, 0))
	}
	m := bigtable.NewMutation()
	m.DeleteRow()
	for _, c := range w.Rows[0].Cells {
		m.Set(c.Family, string(c.Qualifier), v, c.Value)
	}
	m.Set(transform.LiveFamily, q, v, guard.Append(nil, w.Item.Pipeline, w.Item.Table, w.Item.Key))
	guarded := bigtable.InterleaveFilters(atVersion(transform.LiveFamily), atVersion(transform.DeadFamily))
	return bigtable.NewCondMutation(guarded, nil, m)
}
