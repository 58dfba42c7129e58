package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

type options struct {
	out, name, version, revision string
	created                      time.Time
	binaries                     []binary
}

type binary struct{ arch, path string }

// program is what the images of a program differ in.
type program struct {
	config, text string
	command      []string
}

var programs = map[string]program{
	"xdpmon":             {"deploy/agent.yaml", "/etc/xdpmon/agent.yaml", []string{"agent", "--config", "/etc/xdpmon/agent.yaml"}},
	"xdpmon-coordinator": {"deploy/coordinator.yaml", "/etc/xdpmon-coordinator/coordinator.yaml", []string{"--config", "/etc/xdpmon-coordinator/coordinator.yaml"}},
}

// folder is one that blobs are written into.
type folder struct{ dir string }

func write(o options) error {
	p, ok := programs[o.name]
	switch {
	case !ok:
		return fmt.Errorf("no program %q", o.name)
	case o.out == "" || len(o.binaries) == 0:
		return errors.New("give -out and an architecture")
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(o.out, 0o755); err != nil {
		return err
	}
	l := folder{o.out}
	if err := os.MkdirAll(filepath.Join(l.dir, v1.ImageBlobsDir, "sha256"), 0o755); err != nil {
		return err
	}
	index := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex}
	for _, b := range o.binaries {
		manifest, err := l.image(o, p, b)
		if err != nil {
			return fmt.Errorf("image for %s: %w", b.arch, err)
		}
		index.Manifests = append(index.Manifests, manifest)
	}
	inner, err := l.add(v1.MediaTypeImageIndex, index)
	if err != nil {
		return err
	}
	inner.Annotations = map[string]string{v1.AnnotationRefName: o.version}
	outer := v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{inner}}
	return errors.Join(l.file(v1.ImageIndexFile, outer), l.file(v1.ImageLayoutFile, v1.ImageLayout{Version: v1.ImageLayoutVersion}))
}

// image writes layer, configuration and manifest of one architecture.
func (l folder) image(o options, p program, b binary) (v1.Descriptor, error) {
	plain, err := layer(o, p, b)
	if err != nil {
		return v1.Descriptor{}, err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return v1.Descriptor{}, err
	}
	if _, err := z.Write(plain); err != nil {
		return v1.Descriptor{}, err
	}
	if err := z.Close(); err != nil {
		return v1.Descriptor{}, err
	}
	content, err := l.blob(v1.MediaTypeImageLayerGzip, packed.Bytes())
	if err != nil {
		return v1.Descriptor{}, err
	}
	labels := map[string]string{v1.AnnotationTitle: o.name, v1.AnnotationVersion: o.version, v1.AnnotationRevision: o.revision, v1.AnnotationLicenses: "Apache-2.0",
		v1.AnnotationSource: "https://github.com/xdpmon/xdpmon"}
	// Root without capabilities of root: those that an engine adds are only given to user 0 (there are no ambient ones in a container).
	config, err := l.add(v1.MediaTypeImageConfig, v1.Image{Created: &o.created, Platform: v1.Platform{OS: "linux", Architecture: b.arch},
		Config:  v1.ImageConfig{User: "0:0", Entrypoint: []string{"/usr/bin/" + o.name}, Cmd: p.command, StopSignal: "SIGTERM", Labels: labels},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(plain)}},
		History: []v1.History{{Created: &o.created, CreatedBy: "xdpmon lab/oci"}}})
	if err != nil {
		return v1.Descriptor{}, err
	}
	manifest, err := l.add(v1.MediaTypeImageManifest, v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config,
		Layers: []v1.Descriptor{content}, Annotations: labels})
	manifest.Platform = &v1.Platform{OS: "linux", Architecture: b.arch}
	return manifest, err
}

// layer is a tar of folders, program and configuration, all root's and of one time.
func layer(o options, p program, b binary) ([]byte, error) {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	add := func(name string, mode int64, text []byte) error {
		h := tar.Header{Name: name, Mode: mode, Size: int64(len(text)), ModTime: o.created, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if text == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(&h); err != nil {
			return err
		}
		_, err := t.Write(text)
		return err
	}
	for _, dir := range []string{"etc/", "etc/" + o.name + "/", "run/", "tmp/", "usr/", "usr/bin/", "var/", "var/lib/", "var/lib/" + o.name + "/"} {
		mode := int64(0o755)
		if dir == "tmp/" {
			mode = 0o1777
		}
		if err := add(dir, mode, nil); err != nil {
			return nil, err
		}
	}
	for _, f := range []struct {
		from, to string
		mode     int64
	}{{p.config, p.text[1:], 0o600}, {b.path, "usr/bin/" + o.name, 0o755}} {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return nil, err
		}
		if err := add(f.to, f.mode, text); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (l folder) add(media string, v any) (v1.Descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return l.blob(media, text)
}

func (l folder) blob(media string, text []byte) (v1.Descriptor, error) {
	d := v1.Descriptor{MediaType: media, Size: int64(len(text)), Digest: digest.NewDigestFromBytes(digest.SHA256, sum(text))}
	return d, os.WriteFile(filepath.Join(l.dir, v1.ImageBlobsDir, d.Digest.Algorithm().String(), d.Digest.Encoded()), text, 0o644)
}

func sum(text []byte) []byte { s := sha256.Sum256(text); return s[:] }

func (l folder) file(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(l.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, bytes.NewReader(text))
	return errors.Join(err, f.Close())
}
