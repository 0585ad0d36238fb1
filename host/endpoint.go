package host

import (
	"net/url"
	"strings"
)

// AWS reports whether an endpoint of DynamoDB is AWS's own, public or private: there the streams
// have another endpoint than the tables. Emulators have one for both.
func AWS(endpoint string) bool {
	return strings.Contains(endpoint, ".amazonaws.com") || strings.Contains(endpoint, ".api.aws")
}

// WithoutUser returns an endpoint without its user and password, for messages and for clients that
// do not use them: a client's errors repeat the endpoint. Of a text that is no URL everything
// before the last @ is left out.
func WithoutUser(endpoint string) string {
	if !strings.Contains(endpoint, "@") {
		return endpoint
	}
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		u.User = nil
		return u.String()
	}
	scheme, rest, found := strings.Cut(endpoint, "://")
	if !found {
		scheme, rest = "", endpoint
	} else {
		scheme += "://"
	}
	return scheme + rest[strings.LastIndex(rest, "@")+1:]
}
