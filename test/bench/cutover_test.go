package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tailrace-cdc/replicator/sandbox"
)

// BenchmarkCutover rehearses the cutover of a table of 100,000 items while a writer makes 200
// changes a second, then makes it: the writer stops when the command asks for it. All items were
// compared a minute of writes before. It reports the write stop that was rehearsed and the real
// one, in seconds.
func BenchmarkCutover(b *testing.B) {
	for range b.N {
		rehearsed, made := measureStops(b)
		b.ReportMetric(rehearsed, "rehearsed_s")
		b.ReportMetric(made, "real_s")
	}
	b.ReportMetric(0, "ns/op")
}

// measureStops returns the write stop of a rehearsal and the real one, in seconds.
func measureStops(b *testing.B) (rehearsed, made float64) {
	b.Helper()
	b.StopTimer()
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // of the servers, which hold all items and rows in memory
	l := copyLoad{items: 100_000, size: 250}
	r := l.replicate(b)
	defer func() { _ = r.sb.Close() }()
	sb, dir, bin, config, env, cmd := r.sb, r.dir, r.bin, r.config, r.env, r.cmd

	stopped := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { l.change(b, sb, stopped) })
	run(b, dir, env, bin, "verify", "--for-cutover", "-c", config)
	<-time.After(time.Minute) // of writes
	out, _, _ := command(b, dir, env, bin, "cutover", "--table", sourceName(0), "--quiet", "5s",
		"--rehearse", "--json", "-c", config)
	var shown struct {
		WriteStop float64 `json:"write_stop_s"`
	}
	if err := json.Unmarshal(out, &shown); err != nil || shown.WriteStop == 0 {
		b.Fatalf("rehearsal: %v: %s", err, out)
	}
	stood, _ := cutOver(b, dir, env, bin, config, func() {
		close(stopped)
		writer.Wait()
	})
	stop(b, cmd)
	return shown.WriteStop, stood.Seconds()
}

// change changes 200 items a second until it is stopped.
func (l copyLoad) change(b *testing.B, sb *sandbox.Sandbox, stopped chan struct{}) {
	b.Helper()
	rnd := rand.New(rand.NewPCG(2, 2))
	beat := time.NewTicker(5 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-stopped:
			return
		case <-beat.C:
		}
		changed := l
		changed.size += rnd.IntN(50)
		if err := sb.DynamoDB.Put(sourceName(0), changed.item(rnd, rnd.IntN(l.items))); err != nil {
			b.Error(err)
			return
		}
	}
}

// cutOver cuts the table over. When the command asks for it, it stops the writers. It returns how
// long they stood still, and the time from the end of the quiet period; both until the command has
// ended.
func cutOver(
	b *testing.B, dir string, env []string, bin, config string, stopWriters func(),
) (stood, certified time.Duration) {
	b.Helper()
	cmd := exec.Command(bin, "cutover", "--table", sourceName(0), "--quiet", "5s", "--out",
		filepath.Join(dir, "certificate.json"), "-c", config)
	cmd.Dir, cmd.Env = dir, env
	pipe, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	var all strings.Builder
	var stopped, quiet time.Time
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		fmt.Fprintln(&all, time.Now().Format("05.000"), lines.Text())
		switch text := strings.TrimSpace(lines.Text()); {
		case strings.HasPrefix(text, "Stop the writers now"):
			stopWriters()
			stopped = time.Now()
		case strings.HasPrefix(text, "Nothing was written for"):
			quiet = time.Now()
		}
	}
	if err := cmd.Wait(); err != nil || quiet.IsZero() || stopped.IsZero() {
		b.Fatalf("cutover: %v\n%s", err, &all)
	}
	b.Logf("\n%s", &all)
	return time.Since(stopped), time.Since(quiet)
}
