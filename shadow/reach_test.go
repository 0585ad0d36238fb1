package shadow

import (
	"slices"
	"strings"
	"testing"

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
