package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkBulk copies 200,000 items of 1 KB by `replicator-bulk copy` on Prism, into a null server
// and then into the emulator, and compares them by `replicator-bulk verify`. It reports the CPU of
// the job's process for each item and row, its peak memory, and items a second.
func BenchmarkBulk(b *testing.B) {
	for range b.N {
		measureBulk(b)
	}
	b.ReportMetric(0, "ns/op")
}

func measureBulk(b *testing.B) {
	b.StopTimer()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // of the servers, which hold all items and rows in memory
	const files = 50
	l := copyLoad{items: 200_000}
	dir := b.TempDir()
	bin, job := binary(b, dir), filepath.Join(dir, "replicator-bulk")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", job, "./cmd/replicator-bulk")
	build.Dir = "../../bulk"
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build replicator-bulk: %v\n%s", err, out)
	}
	for _, null := range []bool{true, false} {
		sb, err := sandbox.Start(sandbox.Options{NoLedger: true, NoNATS: true, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		w := &bulkWorld{b: b, sb: sb, dir: filepath.Join(dir, fmt.Sprint("null_", null)), bin: bin, job: job}
		if err := os.Mkdir(w.dir, 0o700); err != nil {
			b.Fatal(err)
		}
		w.open(l, files)
		w.copy(l, null)
		if !null {
			w.compare(l)
		}
		stop(b, w.daemon)
		_ = sb.Close()
	}
}

// bulkWorld is a daemon that waits for workers, and its servers.
type bulkWorld struct {
	b        *testing.B
	sb       *sandbox.Sandbox
	dir      string
	bin, job string
	config   string
	env      []string
	daemon   *exec.Cmd
	admin    string
}

// open fills the table, and starts the daemon.
func (w *bulkWorld) open(l copyLoad, files int) {
	w.b.Helper()
	l.fill(w.b, w.sb)
	post(w.b, w.sb, "UpdateContinuousBackups", fmt.Sprintf(
		`{"TableName":%q,"PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true}}`, sourceName(0)))
	w.sb.DynamoDB.SetExports(0, files)
	w.sb.Clock.Advance(10 * time.Minute)
	if err := w.sb.Buckets.Create("backups"); err != nil {
		w.b.Fatal(err)
	}
	w.admin = freeAddress(w.b)
	table := load{tables: 1, items: l.items, options: ", backfill: {from: export, bucket: backups, by: workers}",
		settings: "scratch: ./scratch\ntesting: {date_trust: 1ns}\n"}
	w.config = table.configure(w.b, w.dir, w.sb.Endpoint(), w.admin)
	w.env = append(environment(w.sb.Bigtable.Addr()), "AWS_ENDPOINT_URL_S3="+w.sb.S3.URL(), "AWS_REGION=us-east-1")
	run(w.b, w.dir, w.env, w.bin, "schema", "--apply", "-c", w.config)
	w.daemon = start(w.b, w.bin, w.env, "run", "-c", w.config)
	for range time.Tick(500 * time.Millisecond) {
		if reply, err := http.Get("http://" + w.admin + "/status"); err == nil {
			var text bytes.Buffer
			_, _ = text.ReadFrom(reply.Body)
			_ = reply.Body.Close()
			if strings.Contains(text.String(), "replicator-bulk copy") {
				return
			}
		}
	}
}

// copy runs the job, into a null server or the emulator.
func (w *bulkWorld) copy(l copyLoad, null bool) {
	w.b.Helper()
	server, name := w.sb.Bigtable.Addr(), "copy_emulator_"
	if null {
		f := serveFront(w.b, server, true, network{})
		f.forgets = true
		server, name = f.address, "copy_null_"
	}
	began := time.Now()
	_, cpu, peak := command(w.b, w.dir, w.env, w.job, "copy", "--pipeline", "bench", "--table", sourceName(0),
		"--bigtable", "local/local", "--bigtable-endpoint", server)
	w.report(name, l.items, time.Since(began), cpu.Seconds(), peak)
	if !null {
		run(w.b, w.dir, w.env, w.bin, "status", "--wait", "applied=now", "-c", w.config)
	}
}

// compare compares both sides, which are equal.
func (w *bulkWorld) compare(l copyLoad) {
	w.b.Helper()
	folder := "s3://backups/compare?endpoint=" + w.sb.S3.URL()
	verify := exec.Command(w.bin, "verify", "--workers", folder, "--json", "-c", w.config)
	verify.Dir, verify.Env = w.dir, w.env
	var out bytes.Buffer
	verify.Stdout = &out
	said, err := verify.StderrPipe()
	if err == nil {
		err = verify.Start()
	}
	if err != nil {
		w.b.Fatal(err)
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		_, folder, ok := strings.Cut(lines.Text(), "replicator-bulk verify --comparison ")
		if !ok {
			continue
		}
		began := time.Now()
		_, cpu, peak := command(w.b, w.dir, w.env, w.job, "verify", "--comparison", folder,
			"--bigtable-endpoint", w.sb.Bigtable.Addr())
		w.report("compare_", l.items, time.Since(began), cpu.Seconds(), peak)
	}
	var result struct{ Verdict string }
	if err := verify.Wait(); err != nil || json.Unmarshal(out.Bytes(), &result) != nil || result.Verdict != "equal" {
		w.b.Fatalf("verify: %v: %s", err, &out)
	}
}

func (w *bulkWorld) report(name string, items int, took time.Duration, cpu, peak float64) {
	w.b.ReportMetric(cpu*1e6/float64(items), name+"cpu_µs")
	w.b.ReportMetric(float64(items)/took.Seconds(), name+"items/s")
	w.b.ReportMetric(peak, name+"MiB")
}
