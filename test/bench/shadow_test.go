package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
	"github.com/tailrace-cdc/replicator/sandbox/signature"
	"github.com/tailrace-cdc/replicator/shadow/exchange"
	shadow "github.com/tailrace-cdc/replicator/shadow/front"
)

// shadowService is the variable by which this program, started again, is a front before a service.
const shadowService = "BENCH_SHADOW_SERVICE"

const shadowName = "dynamodb." + sandbox.Region + ".amazonaws.com"

func TestMain(m *testing.M) {
	if endpoint := os.Getenv(shadowService); endpoint != "" {
		if err := runShadowFront(endpoint); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runShadowFront runs a front until its input ends, and prints its address.
func runShadowFront(endpoint string) error {
	share, err := strconv.ParseFloat(os.Getenv("BENCH_SHADOW_SHARE"), 64)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.Background())
	defer end()
	f, err := shadow.New(ctx, shadow.Options{
		Listen: "127.0.0.1:0", Services: []shadow.Service{{Host: shadowName, Endpoint: endpoint}},
		Share: share, Tap: func(*exchange.Exchange) {},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, f.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	return f.Run(ctx)
}

// BenchmarkFront makes 2,000 GetItem calls a second on loopback, in turns through the front of a
// shadow run, which is a process of its own, and without it. It reports what the front adds to the
// median and to the 99th percentile, its CPU for each call, and its peak memory.
func BenchmarkFront(b *testing.B) {
	for _, share := range []string{"0", "0.01", "1"} {
		b.Run("share_"+share, func(b *testing.B) {
			for range b.N {
				measureShadow(b, share)
			}
		})
	}
}

const (
	shadowRate    = 2000 // calls a second
	shadowClients = 32
	shadowTurn    = 2 * time.Second
	shadowTurns   = 4 // through the front, and as many without it
)

func measureShadow(b *testing.B, share string) {
	b.StopTimer()
	sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, NoBigtable: true, NoS3: true})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = sb.Close() }()
	for _, call := range [][2]string{
		{"CreateTable", `{"TableName":"Orders","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}`},
		{"PutItem", fmt.Sprintf(`{"TableName":"Orders","Item":{"pk":{"S":"a"},"text":{"S":%q}}}`, strings.Repeat("x", 1000))},
	} {
		if _, err := sb.Call(b.Context(), call[0], call[1]); err != nil {
			b.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), shadowService+"="+sb.Endpoint(), "BENCH_SHADOW_SHARE="+share)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	idle := peakMemory(b, cmd.Process.Pid)
	service := strings.TrimPrefix(sb.Endpoint(), "http://")
	ways := map[string][]time.Duration{"front": nil, "direct": nil}
	before := processorTime(b, cmd.Process.Pid)
	for range shadowTurns {
		ways["direct"] = append(ways["direct"], getSteadily(b, service, "/")...)
		ways["front"] = append(ways["front"], getSteadily(b, strings.TrimSpace(addr), "http://"+shadowName+"/")...)
	}
	cpu := processorTime(b, cmd.Process.Pid) - before
	peak := peakMemory(b, cmd.Process.Pid)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		b.Fatal(err)
	}
	at := func(way string, q float64) float64 {
		all := ways[way]
		slices.Sort(all)
		return float64(all[int(q*float64(len(all)-1))]) / float64(time.Millisecond)
	}
	for name, q := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		b.ReportMetric(at("direct", q), name+"_ms")
		b.ReportMetric(at("front", q)-at("direct", q), name+"_ms_added")
	}
	b.ReportMetric(float64(cpu.Microseconds())/float64(len(ways["front"])), "cpu_µs/call")
	b.ReportMetric(float64(len(ways["front"]))/(shadowTurns*shadowTurn).Seconds(), "calls/s")
	b.ReportMetric(peak, "MiB")
	b.ReportMetric(idle, "MiB_idle")
	b.ReportMetric(0, "ns/op")
	b.StartTimer()
}

// getSteadily reads an item at a steady rate for one turn, and returns how long each call took.
func getSteadily(b *testing.B, addr, target string) (took []time.Duration) {
	b.Helper()
	const body = `{"TableName":"Orders","Key":{"pk":{"S":"a"}}}`
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/"}, Host: shadowName, Header: http.Header{
		"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Target": {"DynamoDB_20120810.GetItem"},
	}}
	signature.Sign(r, []byte(body), sandbox.Region, time.Now())
	var text strings.Builder
	fmt.Fprintf(&text, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", target, shadowName, len(body))
	_ = r.Header.Write(&text) // a strings.Builder never fails
	text.WriteString("\r\n" + body)

	var mu sync.Mutex
	var clients sync.WaitGroup
	begin := time.Now().Add(50 * time.Millisecond)
	for i := range shadowClients {
		clients.Go(func() {
			mine, err := getFrom(addr, text.String(), begin.Add(time.Duration(i)*time.Second/shadowRate))
			if err != nil {
				b.Errorf("read through %s: %v", addr, err)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, mine...)
		})
	}
	clients.Wait()
	return took
}

// getFrom makes calls on one connection, at its part of the rate.
func getFrom(addr, request string, next time.Time) (took []time.Duration, err error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for end := next.Add(shadowTurn); next.Before(end); next = next.Add(shadowClients * time.Second / shadowRate) {
		<-time.After(time.Until(next))
		sent := time.Now()
		if _, err := io.WriteString(c, request); err != nil {
			return nil, err
		}
		reply, err := http.ReadResponse(in, nil)
		if err != nil {
			return nil, err
		}
		n, err := io.Copy(io.Discard, reply.Body)
		if err != nil || n < 1000 || reply.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("status %d, %d bytes: %w", reply.StatusCode, n, err)
		}
		took = append(took, time.Since(sent))
	}
	return took, nil
}
