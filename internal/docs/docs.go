// SPDX-License-Identifier: Apache-2.0

// Package docs reads the project's documents, so that tests can hold what they
// say against what there is: commands, links, and the names of things.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Page is one Markdown file.
type Page struct {
	Path   string // relative to the project's folder, with slashes
	Text   string
	Blocks []Block
}

// Block is text that is shown as it is.
type Block struct {
	Line     int    // its first line in the page, from 1
	Language string // what a fence says, "" for none and for indented blocks
	Text     string // with newlines, without the indentation
}

// Pages returns all Markdown files below root, in order of their paths, but those
// of folders that are built or hidden.
func Pages(root string) ([]Page, error) {
	var out []Page
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != root && (name == "bin" || strings.HasPrefix(name, ".")) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		out = append(out, Page{Path: filepath.ToSlash(relative), Text: string(text), Blocks: blocks(string(text))})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the documents below %s: %w", root, err)
	}
	return out, nil
}

// blocks finds fenced blocks, and indented ones that follow an empty line.
func blocks(text string) []Block {
	var out []Block
	var open *Block // the block that the line before was in
	fenced, empty := false, true
	end := func() {
		if open != nil {
			out = append(out, *open)
			open = nil
		}
	}
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		inside, indented := strings.CutPrefix(line, "    ")
		switch {
		case isFence && fenced:
			fenced = false
			end()
		case isFence:
			end()
			fenced, open = true, &Block{Line: i + 2, Language: fence}
		case fenced:
			open.Text += line + "\n"
		case open != nil && strings.TrimSpace(line) == "":
			open.Text += "\n"
		case indented && (open != nil || empty):
			if open == nil {
				open = &Block{Line: i + 1}
			}
			open.Text += inside + "\n"
		default:
			end()
		}
		empty = strings.TrimSpace(line) == ""
	}
	end()
	return out
}
