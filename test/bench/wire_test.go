package bench

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// post calls DynamoDB as any client would.
func post(b *testing.B, sb *sandbox.Sandbox, op, body string) {
	b.Helper()
	req, err := http.NewRequest(http.MethodPost, sb.Endpoint(), strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Content-Type", "application/x-amz-json-1.0")
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 "+
		"Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00")
	req.Header.Set("X-Amz-Date", "20260101T000000Z")
	reply, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = reply.Body.Close() }()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(reply.Body)
		b.Fatalf("%s: %d %s", op, reply.StatusCode, text)
	}
}

func freeAddress(b *testing.B) string {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// applied returns when the daemon's own counters say that all changes are applied. The deadline is
// for a daemon that stands still.
func applied(b *testing.B, metrics string, changes int) {
	b.Helper()
	last, since := 0, time.Now()
	tick := time.NewTicker(200 * time.Millisecond) // a look costs the daemon a millisecond
	defer tick.Stop()
	for range tick.C {
		v, _ := sample(metrics, "tailrace_changes_applied_total{")
		switch n := int(v); {
		case n >= changes:
			return
		case n > last:
			last, since = n, time.Now()
		case time.Since(since) > 2*time.Minute:
			b.Fatalf("%d of %d changes applied", n, changes)
		}
	}
}

// sample sums up the metrics that begin so; false while there is none.
func sample(metrics, name string) (sum float64, ok bool) {
	reply, err := http.Get(metrics)
	if err != nil {
		return 0, false // it is not up yet
	}
	defer func() { _ = reply.Body.Close() }()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, name) {
			f, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			sum, ok = sum+f, err == nil
		}
	}
	return sum, ok
}

// peakMemory is the most resident memory of the process so far, in MiB. (What wait4 reports would
// include the memory of this process, which the child shared until it executed.)
func peakMemory(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // not on Linux
	}
	for line := range strings.Lines(string(status)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 64)
			return kib / 1024
		}
	}
	return 0
}
