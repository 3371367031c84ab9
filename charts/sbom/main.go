// Command sbom prints what a Go program is made of, as SPDX 2.3 in JSON, from
// what the compiler wrote into it. It asks nobody.
//
//	go run ./sbom ../bin/karpenter
package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"time"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1], time.Now(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program string, now time.Time, w io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s is not a program of Go's: %w", program, err)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(describe(filepath.Base(program), info, now))
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
func describe(name string, info *debug.BuildInfo, now time.Time) document {
	const self = "SPDXRef-DOCUMENT"
	main := module(info.Main.Path, info.Main.Version)
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: self, Name: name,
		DocumentNamespace: fmt.Sprintf("https://spdx.org/spdxdocs/%s-%d", name, now.UnixNano()),
		CreationInfo:      creation{now.UTC().Format(time.RFC3339), []string{"Tool: karpenter-charts-sbom"}},
		Packages:          []component{main},
		Relationships:     []relationship{{self, "DESCRIBES", main.SPDXID}},
	}
	parts := []component{module("stdlib", info.GoVersion)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, module(m.Path, m.Version))
	}
	for _, p := range parts {
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{main.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	return d
}

func module(path, version string) component {
	id := regexp.MustCompile(`[^A-Za-z0-9.]`).ReplaceAllString(path+"-"+version, "-")
	return component{
		SPDXID: "SPDXRef-" + id, Name: path, VersionInfo: version, DownloadLocation: "NOASSERTION",
		ExternalRefs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + path + "@" + version}},
	}
}
