package sandbox

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// FreeAddr returns an address on loopback at which nothing listens, for a server that is to find it free again after a
// restart, or for one that is never there. Its port lies below those that the system gives to clients and to whoever
// listens on port 0, so that no test takes it by accident.
func FreeAddr(t TB) string {
	t.Helper()
	for range 1000 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(12_000+rand.IntN(20_000)))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			t.Fatalf("%v", err)
		}
		return addr
	}
	t.Fatalf("no free port")
	return ""
}
