package host

import "testing"

func TestEndpointsOfGRPC(t *testing.T) {
	for _, c := range []struct {
		endpoint, addr string
		tls            bool
		secure, fails  bool
	}{
		{endpoint: "127.0.0.1:8086", addr: "127.0.0.1:8086"},
		{endpoint: "http://127.0.0.1:8086/", addr: "127.0.0.1:8086"},
		{endpoint: "me:s3cret@bigtable:8086", addr: "bigtable:8086"},
		{endpoint: "[::1]:8086", addr: "[::1]:8086"},
		{endpoint: "https://bigtable-acme.p.googleapis.com", addr: "bigtable-acme.p.googleapis.com:443", secure: true},
		{endpoint: "https://[fd00::1]", addr: "[fd00::1]:443", secure: true},
		{endpoint: "https://10.0.0.7:8443", addr: "10.0.0.7:8443", secure: true},
		{endpoint: "10.0.0.7:8443", tls: true, addr: "10.0.0.7:8443", secure: true},
		{endpoint: "https://10.0.0.7:8443", tls: true, addr: "10.0.0.7:8443", secure: true},
		{endpoint: "http://10.0.0.7:8443", tls: true, fails: true},
		{endpoint: "10.0.0.7", tls: true, fails: true},
		{endpoint: "https://host/path", fails: true},
		{endpoint: "ftp://host:1", fails: true},
		{endpoint: "https://", fails: true},
		{endpoint: "host:0", fails: true},
		{endpoint: "host:grpc", fails: true},
		{endpoint: ":8086", fails: true},
	} {
		addr, secure, err := GRPC(c.endpoint, c.tls)
		if (err != nil) != c.fails || err == nil && (addr != c.addr || secure != c.secure) {
			t.Errorf("%q, tls %t: %q, secure %t, %v; want %+v", c.endpoint, c.tls, addr, secure, err, c)
		}
	}
}

func TestLoopbackIsThisMachine(t *testing.T) {
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true, "localhost:1": true,
		"tables.localhost:1": true, "10.0.0.7:1": false, "bigtable:8086": false, "0.0.0.0:1": false, "127.0.0.1": false,
		"localhost.example.com:1": false,
	} {
		if got := Loopback(addr); got != want {
			t.Errorf("%s is on this machine: %t", addr, got)
		}
	}
}

func TestPartitionOfARegion(t *testing.T) {
	for region, want := range map[string]string{
		"eu-west-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "us-iso-east-1": "aws-iso",
		"us-isob-east-1": "aws-iso-b", "eusc-de-east-1": "aws-eusc", "": "aws",
	} {
		if got := Partition(region); got != want {
			t.Errorf("%s is in %s, want %s", region, got, want)
		}
	}
}
