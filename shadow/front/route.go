package front

import (
	"bytes"
	"fmt"
	"net/http"
)

// refusal is a request that the front answers itself.
type refusal struct {
	status int
	code   string // the type in the answer, by which clients decide whether to try again
	hint   string // for the operator of the application
	shown  bool   // the hint is in the first line too, of which clients show the reason after CONNECT
}

// The codes of refusals. Clients try InternalServerError again, and no other.
const (
	codeDenied    = "AccessDeniedException"
	codeMalformed = "SerializationException"
	codeTooLarge  = "RequestEntityTooLarge"
	codeUnreached = "InternalServerError"
)

func denied(format string, args ...any) *refusal {
	return &refusal{status: http.StatusForbidden, code: codeDenied, hint: fmt.Sprintf(format, args...)}
}

func malformed(hint string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: codeMalformed, hint: hint}
}

var badBody = malformed("the body of the request is malformed")

const connect = "CONNECT"

// route returns the service that a request is for, and its target there. tunnel is the service that
// the connection was opened for by CONNECT, nil if it was not. For mode Mirror it returns neither.
func (f *Front) route(h *head, tunnel *service) (to *service, target []byte, bad *refusal) {
	scheme, host, path := split(h)
	switch {
	case f.o.Mode == Mirror && scheme != connect:
		return nil, path, nil
	case f.o.Mode == Mirror:
		return nil, nil, denied("a mirror takes copies of requests, and no tunnels")
	case f.o.Mode == Sign && h.get("origin") != nil:
		return nil, nil, denied("the front signs for applications, and a page of a browser asks: each page that is open on " +
			"this machine could read and write with its permissions")
	case f.o.Mode == Sign && scheme == "":
		return f.services[0], path, nil
	case f.o.Mode == Sign:
		return nil, nil, denied("this front signs requests: set the endpoint of DynamoDB to http://%s, and no HTTP_PROXY",
			f.Addr())
	case tunnel != nil && scheme == "":
		return tunnel, path, nil
	case tunnel != nil:
		return nil, nil, malformed("a request in a tunnel names no host in its first line")
	case scheme == "":
		return nil, nil, denied("this front keeps signatures, so it must be an HTTP proxy: set the endpoint of DynamoDB to "+
			"http://%s and HTTP_PROXY=http://%s, or begin the front with --sign", f.services[0].host, f.Addr())
	case scheme == "https", scheme == connect && bytes.HasSuffix(host, []byte(":443")):
		return nil, nil, denied("the front cannot read HTTPS: set the endpoint of DynamoDB to http://%s, with http and not "+
			"https, and unset HTTPS_PROXY; the front itself uses TLS", f.services[0].host)
	case scheme != "http" && scheme != connect:
		return nil, nil, malformed("the first line of the request names neither a path nor an http:// address")
	}
	for _, s := range f.services {
		if bytes.Equal(s.host, withoutPort(string(host))) {
			return s, path, nil
		}
	}
	return nil, nil, denied("the front is for %s, and not for %s: set NO_PROXY=%s", f.services[0].host, host, host)
}

// split returns the parts of a request's target: its scheme, which is "CONNECT" for a tunnel and ""
// for a target without a host; its host; and its path with the query.
//
// Source: RFC 9112, section 3.2.
func split(h *head) (scheme string, host, path []byte) {
	if string(h.method) == connect {
		return connect, h.target, nil
	}
	if h.target[0] == '/' || h.target[0] == '*' {
		return "", nil, h.target
	}
	name, rest, _ := bytes.Cut(h.target, []byte("://"))
	end := bytes.IndexAny(rest, "/?")
	if end < 0 {
		return string(bytes.ToLower(name)), rest, []byte("/")
	}
	host, path = rest[:end], rest[end:]
	if path[0] == '?' {
		path = append([]byte("/"), path...)
	}
	return string(bytes.ToLower(name)), host, path
}

// appendHead appends the head of a request as the service gets it: with another first line, and
// without the fields for the proxy. All others stay as they are, because signatures cover them.
func appendHead(b []byte, h *head, target []byte, keep func(*field) bool) []byte {
	b = append(append(b, h.method...), ' ')
	b = append(append(b, target...), " HTTP/1."...)
	b = append(b, '0'+h.minor, '\r', '\n')
	for i := range h.fields {
		if f := &h.fields[i]; !f.begins("proxy-") && keep(f) {
			b = append(b, f.line...)
		}
	}
	return b
}

func keepAll(*field) bool { return true }

// keepUnsigned reports whether a field stays that the front's signature does not replace.
func keepUnsigned(f *field) bool {
	return !f.is("host") && !f.is("authorization") && !f.is("x-amz-date") && !f.is("x-amz-security-token")
}

// withoutPort returns a host in lower case, without the port of plain HTTP.
func withoutPort(host string) []byte {
	return bytes.TrimSuffix(bytes.ToLower([]byte(host)), []byte(":80"))
}
