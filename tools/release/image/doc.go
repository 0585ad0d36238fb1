// Command image makes the container image of the replicator without Docker, or with -boot that of replicator-bulk: an OCI
// image index for linux/amd64 and linux/arm64, in an OCI layout and as a tar file of it. It needs no base image and no
// registry.
//
// An image holds what the Dockerfile's stage holds. Both are built from scratch; TestImageIsTheDockerfiles compares them.
//
// Files, from the top down:
//
//	main.go    flags, the layout, the tar file, pushing
//	index.go   the index, an image per processor, its configuration
//	layer.go   the files of the image
//	roots.go   the certificate authorities
package main
