package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/catalog"
	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/failure"
	"github.com/tailrace-cdc/replicator/shadow/front"
	"github.com/tailrace-cdc/replicator/shadow/replay"
	"github.com/tailrace-cdc/replicator/verify/report"
)

// TestFrontReachesWhatTheSourceReaches: also where only the environment names it, and never AWS in
// plain text, which is what the application's endpoint in the same environment says.
func TestFrontReachesWhatTheSourceReaches(t *testing.T) {
	const name = "dynamodb.eu-west-1.amazonaws.com"
	for endpoint, want := range map[string][]front.Service{
		"": {{Host: name}},
		"http://127.0.0.1:8000/": {
			{Host: name, Endpoint: "http://127.0.0.1:8000/"}, {Host: "127.0.0.1:8000", Endpoint: "http://127.0.0.1:8000/"},
		},
		"https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com": {
			{Host: name, Endpoint: "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com"},
			{
				Host:     "vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com",
				Endpoint: "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com",
			},
		},
		"http://" + name: {{Host: name, Endpoint: "https://" + name}, {Host: name, Endpoint: "https://" + name}},
		"http://" + name + ":80": {
			{Host: name, Endpoint: "https://" + name}, {Host: name + ":80", Endpoint: "https://" + name},
		},
	} {
		if got := services(name, endpoint); !slices.Equal(got, want) {
			t.Errorf("%q: %+v", endpoint, got)
		}
	}
}

func TestAddressOfAFront(t *testing.T) {
	for listening, want := range map[string]struct {
		addr string
		away bool
	}{
		"127.0.0.1:8001": {"127.0.0.1:8001", false}, "[::1]:8001": {"[::1]:8001", false},
		"[::ffff:127.0.0.1]:8001": {"[::ffff:127.0.0.1]:8001", false}, "10.0.0.1:8001": {"10.0.0.1:8001", true},
	} {
		if addr, away := reachedAt(listening); addr != want.addr || away != want.away {
			t.Errorf("%s: %s, %v", listening, addr, away)
		}
	}
	for _, all := range []string{"0.0.0.0:8001", "[::]:8001"} {
		if addr, away := reachedAt(all); strings.Contains(addr, "0.0.0.0") || strings.Contains(addr, "::") || !away {
			t.Errorf("%s is no address for a client", addr)
		}
	}
}

func TestSharesThatAreNone(t *testing.T) {
	for _, text := range []string{"x", "-1%", "101%", "2", "NaN", "nan%", "1%%"} {
		if share, err := shareOf(text, config.Shadow{}); err == nil {
			t.Errorf("%q: %v", text, share)
		}
	}
	if share, err := shareOf("1%", config.Shadow{}); err != nil || share != 0.01 {
		t.Errorf("%v, %v", share, err)
	}
	if share, err := shareOf("", config.Shadow{Share: 0.25}); err != nil || share != 0.25 {
		t.Errorf("of the configuration: %v, %v", share, err)
	}
}

// tearing writes a part of every second line and fails, as a full disk does.
type tearing struct {
	bytes.Buffer
	calls int
}

func (t *tearing) Write(p []byte) (int, error) {
	if t.calls++; t.calls%2 == 0 {
		n, _ := t.Buffer.Write(p[:len(p)/2])
		return n, errors.New("no space left")
	}
	return t.Buffer.Write(p)
}

// TestLinesBehindATornOneAreWhole: a full disk costs the mismatches that it has no room for.
func TestLinesBehindATornOneAreWhole(t *testing.T) {
	to := &tearing{}
	l := &mismatchLines{to: to}
	for i := range 5 {
		err := l.write(lineOf(&replay.Mismatch{Table: "Orders", Key: strconv.Itoa(i)}, "orders"))
		if (err != nil) != (i%2 == 1) {
			t.Errorf("line %d: %v", i, err)
		}
	}
	var keys []string
	for line := range strings.Lines(to.String()) {
		var m report.Difference
		if json.Unmarshal([]byte(line), &m) == nil {
			keys = append(keys, string(m.Key))
		}
	}
	if !slices.Equal(keys, []string{"0", "2", "4"}) {
		t.Errorf("%v of %s", keys, to.String())
	}
}

// TestFileOfMismatchesIsTheUsersAlone, also one that was there before and has lines.
func TestFileOfMismatchesIsTheUsersAlone(t *testing.T) {
	name := filepath.Join(t.TempDir(), "wrong.jsonl")
	if err := os.WriteFile(name, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	write, closeFile, err := mismatchFile(name, &catalog.Catalog{})
	if err == nil {
		err = errors.Join(write(replay.Mismatch{Key: `"k"`}), closeFile())
	}
	info, _ := os.Stat(name)
	text, _ := os.ReadFile(name)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%v, %v: %s", err, info.Mode(), text)
	}
	_, _, err = mismatchFile(filepath.Join(name, "none"), &catalog.Catalog{})
	if class, _ := failure.Of(err); err == nil || class != failure.Unready {
		t.Errorf("a file that cannot be: %v", err)
	}
}

// TestReportsCountOnce: the same report twice would count twice.
func TestReportsCountOnce(t *testing.T) {
	const report = `{"schema":1,"requests":{"total":1,"taken":1},"counted":1,"counts":{"format":1,"requests":1}}`
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, copied := write("one", report), write("copied", report)
	other := write("other", strings.ReplaceAll(report, "1,", "1, "))
	idle := write("idle", `{"schema":1,"counts":{"format":1}}`)
	if all, err := shadowReports([]string{one, other, idle, idle}); err != nil || len(all) != 4 {
		t.Errorf("%d reports: %v", len(all), err)
	}
	newer := write("newer", strings.Replace(report, "1", "2", 1))
	for _, files := range [][]string{{one, one}, {one, copied}, {one, newer}} {
		if _, err := shadowReports(files); err == nil {
			t.Errorf("%v: no error", files)
		}
	}
}
