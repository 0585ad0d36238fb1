package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tailrace-cdc/replicator/config"
	"github.com/tailrace-cdc/replicator/shadow/front"
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
