// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is one entry of an archive.
type file struct {
	name string
	mode int64
	text []byte // nil for a folder
}

// archive returns a tar archive whose bytes depend on the files only: they belong
// to root, and are as old as the Unix epoch.
func archive(files []file) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if f.text == nil {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// packageChart writes a chart's archive as Helm does, with reproducible bytes.
func packageChart(folder, to string) error {
	files := []file{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(filepath.Dir(folder), path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if text == nil {
			text = []byte{}
		}
		files = append(files, file{filepath.ToSlash(relative), 0o644, text})
		return err
	})
	if err != nil {
		return err
	}
	text, err := archive(files)
	if err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	zip := gzip.NewWriter(f)
	if _, err := zip.Write(text); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	return f.Close()
}

// extract writes the files of a tar archive to a folder, which only its owner can
// write to, as a read-only container file system.
func extract(from io.Reader, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.Clean(h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := root.MkdirAll(name, fs.FileMode(h.Mode)); err != nil {
				return err
			}
			continue
		}
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, fs.FileMode(h.Mode))
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, r); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
}

// extractZip writes the files of a compressed archive to a folder.
func extractZip(path, folder string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	return extract(zip, folder)
}
