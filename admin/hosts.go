package admin

import (
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// privateSuffixes end names that no public DNS gives out: the machine itself, Kubernetes, multicast
// DNS, and names for private use.
var privateSuffixes = []string{".localhost", ".svc", ".local", ".internal"}

// hosts are the names by which the server answers, beside addresses and names that no public DNS
// has.
type hosts []string

// hostsOf returns the names of the configuration and the machine's own.
func hostsOf(configured []string) (own hosts) {
	for _, name := range configured {
		own = append(own, canonical(name))
	}
	if name, err := os.Hostname(); err == nil {
		own = append(own, canonical(name))
	}
	return own
}

// refuseOthers answers requests with a Host header that is not a name of the server. A browser that
// is on a page of a name that an attacker makes resolve to this address (DNS rebinding) may read
// the replies, and sends that name. So a name is accepted only if no attacker can own it.
func (own hosts) refuseOthers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !own.answersTo(r.Host) {
			http.Error(w, "this name is not the replicator's: add it to admin.hosts if it is",
				http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// answersTo reports whether a Host header is accepted: an address (probes of a pod, port
// forwarding, load balancers), a name without a dot (localhost, a service of Compose or of the same
// namespace), a name under a private suffix, the machine's own name, or one of the configuration.
// Browsers always send the header; without one there is no name to be rebound.
func (own hosts) answersTo(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = canonical(strings.Trim(host, "[]"))
	if _, err := netip.ParseAddr(host); err == nil || !strings.ContainsAny(host, ".:") {
		return true
	}
	return slices.Contains(own, host) ||
		slices.ContainsFunc(privateSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

// canonical returns a name in lower case and without the dot of the root.
func canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }
