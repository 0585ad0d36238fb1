package config

import (
	"strings"
	"time"

	"github.com/tailrace-cdc/replicator/host"
)

// Bigtable sets where rows are written. Credentials are Google's application default credentials.
type Bigtable struct {
	// Google Cloud project.
	Project string `yaml:"project" jsonschema:"required"`
	// Bigtable instance.
	Instance string `yaml:"instance" jsonschema:"required"`
	// App profile: needs single-cluster routing and transactional writes. Empty: the instance's
	// default profile.
	AppProfile string `yaml:"app_profile"`
	// App profile of copies, resyncs, repairs and comparisons, for a lower request priority. It
	// must route to the same cluster as app_profile, with transactional writes. Empty: the same as
	// app_profile.
	CopyProfile string `yaml:"copy_profile"`
	// Overrides the endpoint of reads and writes. https://HOST, or HOST:PORT with tls: true, such
	// as a Private Service Connect endpoint: TLS with Google's credentials. HOST:PORT of an
	// emulator: plain text without credentials. Empty: Google's service, or
	// $BIGTABLE_EMULATOR_HOST.
	Endpoint string `yaml:"endpoint"`
	// Overrides the endpoint of tables and app profiles, which in Google Cloud is another host.
	// Empty: that of an emulator is endpoint, else Google's service.
	AdminEndpoint string `yaml:"admin_endpoint"`
	// Whether an endpoint without https:// is spoken to with TLS and Google's credentials.
	TLS bool `yaml:"tls"`
	// PEM file with authorities to trust beside the system's.
	CA string `yaml:"ca"`
	// Permits an endpoint in plain text, without credentials, that is not on this machine.
	Insecure bool `yaml:"insecure"`
	// Domain of the service's hosts in a sovereign cloud. Empty: $GOOGLE_CLOUD_UNIVERSE_DOMAIN,
	// then googleapis.com.
	UniverseDomain string `yaml:"universe_domain"`
	// Deadline of every single call. Too short: calls are retried that were going to succeed;
	// harmless, but slow.
	Timeout Duration `yaml:"timeout"`
	// Most writes of a table in flight at once, 8 to 4096. How many there are is found from what
	// Bigtable answers.
	MaxInFlight int `yaml:"max_in_flight"`
	// How long tombstones are kept, which let a delete win over a late older write. A change older
	// than this minus 24 hours becomes a dead letter, so it also bounds how long the sink may lag.
	Tombstones Duration `yaml:"tombstones"`
}

// bigtable checks that the instance is named, and that tombstones outlive DynamoDB's retention.
func (r *report) bigtable(b *Bigtable) {
	for _, v := range []struct{ path, value string }{{"bigtable.project", b.Project}, {"bigtable.instance", b.Instance}} {
		switch {
		case v.value == "" && !r.reported(v.path):
			r.fault("missing", v.path, "any word will do for an emulator", "%s is required", v.path)
		case strings.HasPrefix(v.value, placeholder):
			r.fault("missing", v.path, "any word will do for an emulator", "%s is still %s: write the name of yours",
				v.path, v.value)
		}
	}
	r.bigtableEndpoints(b)
	r.positive("bigtable.timeout", b.Timeout)
	if b.MaxInFlight < 8 || b.MaxInFlight > 4096 {
		r.fault("bad_value", "bigtable.max_in_flight", "2048 is the default; fewer spare the cluster",
			"%d calls are not from 8 to 4096", b.MaxInFlight)
	}
	if d := time.Duration(b.Tombstones); d < 48*time.Hour && !r.reported("bigtable.tombstones") {
		r.fault("bad_value", "bigtable.tombstones", "168h is the default",
			"tombstones of %s are too short: DynamoDB keeps changes for 24 h, and the last 24 h of a tombstone's life are "+
				"its margin", b.Tombstones)
	}
}

// bigtableEndpoints checks that nothing is sent in plain text over a network by mistake: an
// endpoint of a cloud that is taken for an emulator would get rows without TLS and without
// credentials.
func (r *report) bigtableEndpoints(b *Bigtable) {
	secure := b.Endpoint == "" // the service
	for _, e := range []struct{ path, value string }{
		{"bigtable.endpoint", b.Endpoint}, {"bigtable.admin_endpoint", b.AdminEndpoint},
	} {
		if e.value == "" || r.reported(e.path) {
			continue
		}
		addr, tls, err := host.GRPC(e.value, b.TLS)
		switch {
		case err != nil:
			r.fault("bad_value", e.path, "https://HOST for Google Cloud, or HOST:PORT of an emulator", "%q: %v",
				host.WithoutUser(e.value), err)
		case !tls && !b.Insecure && !host.Loopback(addr):
			r.fault("bad_value", e.path, "https://HOST for Google Cloud; insecure: true permits an emulator on another machine",
				"%q would be spoken to in plain text and without credentials", host.WithoutUser(e.value))
		}
		secure = secure || tls
	}
	switch {
	case b.TLS && b.Endpoint == "" && b.AdminEndpoint == "":
		r.fault("conflict", "bigtable.tls", "remove it, or set bigtable.endpoint",
			"bigtable.tls is for bigtable.endpoint only; Google's service always has TLS")
	case b.CA != "" && !secure:
		r.fault("conflict", "bigtable.ca", "remove it, or write https:// before the endpoint",
			"bigtable.ca is for TLS, and the endpoint is plain text")
	case b.Endpoint != "" && secure && b.AdminEndpoint == "":
		r.warn("one_endpoint", "bigtable.endpoint",
			"set bigtable.admin_endpoint too, for example https://bigtableadmin-NAME.p.googleapis.com",
			"tables and app profiles have another endpoint than rows; without one they are reached at Google's public one")
	}
}
