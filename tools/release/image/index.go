package main

import (
	"fmt"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Options say what goes into the image.
type Options struct {
	Version, Revision string
	Time              time.Time         // of all files, and of the image's creation
	Programs          map[string]string // file of the program by processor, as GOARCH says it
	Boot              map[string]string // of replicator-bulk: file of Beam's boot program by processor; else nil
	Licenses          string            // directory with LICENSE and THIRD-PARTY-NOTICES.txt
	Zones             string            // file: the time zones, zoneinfo.zip; of the replicator alone
}

// bulk reports whether the image is that of replicator-bulk.
func (o Options) bulk() bool { return o.Boot != nil }

// program returns the name of the program.
func (o Options) program() string {
	if o.bulk() {
		return "replicator-bulk"
	}
	return "replicator"
}

// Index returns the index of the images for all processors of o.Programs.
func Index(o Options) (v1.ImageIndex, error) {
	shared, err := sharedLayer(o)
	if err != nil {
		return nil, err
	}
	var index v1.ImageIndex = empty.Index // an OCI index
	for _, arch := range sorted(o.Programs) {
		img, err := image(o, arch, shared)
		if err != nil {
			return nil, fmt.Errorf("make image for %s: %w", arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return mutate.Annotations(index, labels(o)).(v1.ImageIndex), nil
}

func sorted(m map[string]string) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// image returns the image for one processor.
func image(o Options, arch string, shared v1.Layer) (v1.Image, error) {
	program, err := programLayer(o, arch)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img,
		mutate.Addendum{Layer: shared, MediaType: types.OCILayer, History: history(o, "certificates, user, and what the program needs")},
		mutate.Addendum{Layer: program, MediaType: types.OCILayer, History: history(o, o.program())},
	)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = "linux", arch, v1.Time{Time: o.Time}
	file.Config = config(o)
	return mutate.ConfigFile(img, file)
}

func history(o Options, what string) v1.History {
	return v1.History{Created: v1.Time{Time: o.Time}, CreatedBy: "tools/release/image", Comment: what}
}

// config returns what the Dockerfile says behind the last COPY of the image's stage.
func config(o Options) v1.Config {
	if o.bulk() {
		return v1.Config{
			User: "65532:65532", WorkingDir: "/tmp", Entrypoint: []string{"/replicator-bulk"}, Labels: labels(o),
		}
	}
	return v1.Config{
		User:         "65532:65532",
		WorkingDir:   "/data",
		Env:          []string{"ZONEINFO=/usr/share/zoneinfo.zip"},
		Volumes:      map[string]struct{}{"/data": {}},
		ExposedPorts: map[string]struct{}{"9464/tcp": {}},
		Entrypoint:   []string{"/replicator"},
		Cmd:          []string{"run", "--config", "/etc/tailrace/tailrace.yaml"},
		Labels:       labels(o),
	}
}

func labels(o Options) map[string]string {
	const source = "https://github.com/tailrace-cdc/replicator"
	what, page := "Streams Amazon DynamoDB tables into Google Bigtable", "README.md"
	if o.bulk() {
		what, page = "Copies and compares large tables on Apache Beam", "docs/bulk.md"
	}
	return map[string]string{
		"org.opencontainers.image.title":         "Tailrace " + o.program(),
		"org.opencontainers.image.description":   what,
		"org.opencontainers.image.source":        source,
		"org.opencontainers.image.documentation": source + "/blob/main/" + page,
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       o.Version,
		"org.opencontainers.image.revision":      o.Revision,
	}
}
