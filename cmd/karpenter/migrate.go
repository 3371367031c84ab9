// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karpenter/cmd/karpenter/migrate"
)

// errByHand means that nothing failed, and people have to do the rest.
var errByHand = errors.New("things are left to do by hand; the report names them")

// migrating is the flags of migrate.
type migrating struct {
	migrate.Options
	write, check, diff bool
}

func migrateCommand(s surroundings) *cobra.Command {
	var m migrating
	c := &cobra.Command{
		Use:   "migrate FILE|DIRECTORY|-...",
		Short: "Rewrite manifests of v1alpha5 and v1beta1 as v1",
		Long: `Rewrite manifests of v1alpha5 and v1beta1 as v1, and report what is left to do
by hand. Manifests of v1 are checked.`,
		Example: `  karpenter migrate --check manifests/
  karpenter migrate --diff manifests/
  karpenter migrate --write manifests/
  helm template CHART | karpenter migrate -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("migrate: want files, directories, or - for the standard input, as in: karpenter migrate --check manifests/")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return m.run(s, args) },
	}
	flags := c.Flags()
	flags.BoolVarP(&m.write, "write", "w", false, "rewrite the files in place instead of printing them all")
	flags.BoolVar(&m.check, "check", false, fmt.Sprintf("print the report only, and exit with %d if something is left to do by hand", exitByHand))
	flags.BoolVar(&m.diff, "diff", false, "print what would change in the files")
	flags.StringVar(&m.Role, "role", "", "IAM role of nodes whose class names none")
	flags.StringVar(&m.InstanceProfile, "instance-profile", "", "instance profile of nodes whose class names none")
	return c
}

func (m *migrating) run(s surroundings, paths []string) error {
	switch {
	case m.Role != "" && m.InstanceProfile != "":
		return usageError{errors.New("migrate: --role and --instance-profile: want one of them")}
	case m.write && (m.check || m.diff || slices.Contains(paths, "-")):
		return usageError{errors.New("migrate: --write goes with files and directories, without --check and --diff")}
	}
	sources, err := manifests(paths, s.stdin)
	if err != nil {
		return err
	}
	result, err := migrate.Migrate(sources, m.Options)
	if err != nil {
		return err
	}
	report := s.stdout
	switch {
	case m.write:
		err = rewriteFiles(result.Files)
	case m.diff:
		report = s.stderr
		err = migrate.WriteDiff(s.stdout, sources, result.Files)
	case !m.check:
		report = s.stderr
		_, err = io.WriteString(s.stdout, migrate.Joined(result.Files))
	}
	if err == nil {
		err = result.Report.Write(report)
	}
	if err == nil {
		m.next(s, paths, result.Report)
	}
	if err == nil && m.check && result.Report.ByHand() > 0 {
		err = errByHand
	}
	return err
}

// next names the command that goes on.
func (m *migrating) next(s surroundings, paths []string, r migrate.Report) {
	from := strings.Join(paths, " ")
	switch {
	case slices.Contains(paths, "-"):
		next(s, "karpenter plan -f FILE")
	case m.write || r.Objects == 0 && (m.check || r.ByHand() == 0):
		next(s, "karpenter plan -f "+paths[0])
	case r.Objects == 0:
		next(s, "karpenter migrate --check "+from)
	case m.check:
		next(s, "karpenter migrate --diff "+from)
	default:
		next(s, "karpenter migrate --write "+from)
	}
}

// manifests reads files, and those below directories that are called .yaml or
// .yml.
func manifests(paths []string, stdin io.Reader) ([]migrate.Source, error) {
	var sources []migrate.Source
	for _, path := range paths {
		if path == "-" {
			text, err := io.ReadAll(stdin)
			if err != nil {
				return nil, fmt.Errorf("read the standard input: %w", err)
			}
			sources = append(sources, migrate.Source{Name: "stdin", Text: string(text)})
			continue
		}
		err := filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && file != path && entry.Name()[0] == '.':
				return fs.SkipDir
			case entry.IsDir(), file != path && !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)):
				return nil
			}
			text, err := os.ReadFile(file)
			sources = append(sources, migrate.Source{Name: file, Text: string(text)})
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("migrate: %w", err)
		}
	}
	return sources, nil
}

// rewriteFiles writes what has changed, each file whole or not at all.
func rewriteFiles(files []migrate.File) error {
	for _, f := range files {
		if f.Changed && filepath.Ext(f.Name) == ".json" {
			return fmt.Errorf("%s: JSON cannot hold the comments that say what was decided; turn it into YAML, as in: karpenter migrate %s > new.yaml", f.Name, f.Name)
		}
	}
	for _, f := range files {
		if !f.Changed {
			continue
		}
		info, err := os.Stat(f.Name)
		if err != nil {
			return err
		}
		path, err := filepath.EvalSymlinks(f.Name)
		if err != nil {
			return err
		}
		fresh := path + ".migrated"
		if err := os.WriteFile(fresh, []byte(f.Text), info.Mode().Perm()); err != nil {
			return err
		}
		if err := os.Rename(fresh, path); err != nil {
			return errors.Join(err, os.Remove(fresh))
		}
	}
	return nil
}
