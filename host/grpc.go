package host

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// GRPC returns the host:port of an endpoint of a gRPC service, and whether it is spoken to with
// TLS. An endpoint is host:port or http://host:port, which are plain text, or https://host with or
// without a port; tls makes the first one secure. User and password are left out.
func GRPC(endpoint string, tls bool) (addr string, secure bool, err error) {
	endpoint = WithoutUser(endpoint)
	if !strings.Contains(endpoint, "://") {
		return endpoint, tls, checkAddress(endpoint)
	}
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", false, errors.New("not host:port, http://host:port or https://host")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "":
		return "", false, errors.New("an endpoint has no path")
	case u.Scheme == "http" && tls:
		return "", false, errors.New("http:// is plain text, and tls: true is not")
	case u.Scheme == "https" && u.Port() == "":
		return net.JoinHostPort(u.Hostname(), "443"), true, nil
	}
	return u.Host, u.Scheme == "https", checkAddress(u.Host)
}

// checkAddress returns why a text is not host:port; nil when it is.
func checkAddress(addr string) error {
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("not host:port")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 || name == "" || strings.ContainsAny(name, "/@") {
		return errors.New("not host:port")
	}
	return nil
}

// Loopback reports whether host:port is on this machine.
func Loopback(addr string) bool {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}
