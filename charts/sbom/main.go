// SPDX-License-Identifier: Apache-2.0

// Command sbom prints the SBOM of a Go program as SPDX 2.3 in JSON. The modules
// come from the build information in the program. The licenses come from Go's
// module cache and, for the program itself, from a folder. It needs no network.
//
//	go run ./sbom ../bin/karpenter ..
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"karpenter/charts/licences"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM FOLDER-OF-ITS-SOURCE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], created(os.Getenv("SOURCE_DATE_EPOCH")), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// created returns the time that the document names: that of a reproducible build,
// in seconds since the Unix epoch, or now.
func created(epoch string) time.Time {
	if seconds, err := strconv.ParseInt(epoch, 10, 64); err == nil {
		return time.Unix(seconds, 0)
	}
	return time.Now()
}

func run(program, source string, now time.Time, w io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s is not a program of Go's: %w", program, err)
	}
	found, err := folders(source)
	if err != nil {
		return err
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(describe(filepath.Base(program), info, found, now))
}

// document and what follows are SPDX's, as far as they are needed.
type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []component    `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type component struct {
	SPDXID           string      `json:"SPDXID"`
	Name             string      `json:"name"`
	VersionInfo      string      `json:"versionInfo,omitempty"`
	DownloadLocation string      `json:"downloadLocation"`
	FilesAnalyzed    bool        `json:"filesAnalyzed"`
	LicenseConcluded string      `json:"licenseConcluded"`
	LicenseDeclared  string      `json:"licenseDeclared"`
	ExternalRefs     []reference `json:"externalRefs,omitempty"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// describe makes the document of a program: the program, the standard library
// and every module that is in it.
func describe(name string, info *debug.BuildInfo, in places, now time.Time) document {
	const self = "SPDXRef-DOCUMENT"
	main := module(info.Main.Path, info.Main.Version, in.source)
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: self, Name: name,
		DocumentNamespace: fmt.Sprintf("https://spdx.org/spdxdocs/%s-%d", name, now.UnixNano()),
		CreationInfo:      creation{now.UTC().Format(time.RFC3339), []string{"Tool: karpenter-charts-sbom"}},
		Packages:          []component{main},
		Relationships:     []relationship{{self, "DESCRIBES", main.SPDXID}},
	}
	parts := []component{module("stdlib", info.GoVersion, in.goroot)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(m.Path, m.Version, licences.Module(in.cache, m.Path, m.Version)))
	}
	for _, p := range parts {
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{main.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	return d
}

// places are where the source of a program lies.
type places struct{ source, goroot, cache string }

// folders asks the go command.
func folders(source string) (places, error) {
	out, err := exec.Command("go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return places{}, fmt.Errorf("go env: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 2 {
		return places{}, fmt.Errorf("go env: want two lines, got %q", out)
	}
	return places{source, lines[0], lines[1]}, nil
}

// licensed returns the SPDX expression of a folder's licenses, or NOASSERTION
// if there is no such folder or a license is unknown.
func licensed(dir string) string {
	ids, err := licences.Of(dir)
	if err != nil || len(ids) == 0 {
		return "NOASSERTION"
	}
	return strings.Join(ids, " AND ")
}

func module(path, version, dir string) component {
	id := regexp.MustCompile(`[^A-Za-z0-9.]`).ReplaceAllString(path+"-"+version, "-")
	licence := licensed(dir)
	return component{
		SPDXID: "SPDXRef-" + id, Name: path, VersionInfo: version, DownloadLocation: "NOASSERTION",
		LicenseConcluded: licence, LicenseDeclared: licence,
		ExternalRefs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
