package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"karpenter/cmd/karpenter/migrate"
)

// errByHand means that nothing failed, and people have to do the rest.
var errByHand = errors.New("things are left to do by hand; the report names them")

// migrateManifests rewrites manifests of older APIs as v1.
func migrateManifests(_ context.Context, s surroundings) error {
	flags := flag.NewFlagSet("migrate [flags] FILE|DIRECTORY|-...", flag.ContinueOnError)
	var options migrate.Options
	var write, check bool
	flags.BoolVar(&write, "write", false, "write the files anew in place, instead of all to the standard output")
	flags.BoolVar(&write, "w", false, "as --write")
	flags.BoolVar(&check, "check", false, "write nothing but the report, and exit with 4 when something is left to do by hand")
	flags.StringVar(&options.Role, "role", "", "IAM role of nodes whose class names none")
	flags.StringVar(&options.InstanceProfile, "instance-profile", "", "instance profile of nodes whose class names none")
	paths, err := mixed(flags, s)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case len(paths) == 0:
		return usageError{errors.New("migrate: want files, directories, or - for the standard input")}
	case options.Role != "" && options.InstanceProfile != "":
		return usageError{errors.New("migrate: --role and --instance-profile: want one of them")}
	case write && (check || slices.Contains(paths, "-")):
		return usageError{errors.New("migrate: --write goes with files and directories, without --check")}
	}
	sources, err := manifests(paths, s.stdin)
	if err != nil {
		return err
	}
	result, err := migrate.Migrate(sources, options)
	if err != nil {
		return err
	}
	report := s.stdout
	switch {
	case write:
		err = rewriteFiles(result.Files)
	case !check:
		report = s.stderr
		_, err = io.WriteString(s.stdout, migrate.Joined(result.Files))
	}
	if err == nil {
		err = result.Report.Write(report)
	}
	if err == nil && check && result.Report.ByHand() > 0 {
		err = errByHand
	}
	return err
}

// mixed parses flags that may stand between arguments, and returns the
// arguments.
func mixed(flags *flag.FlagSet, s surroundings) (args []string, err error) {
	for {
		// A lone "-" ends the flags for package flag, too.
		err := parsedSome(flags, s)
		if err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return args, nil
		}
		args, s.args = append(args, flags.Arg(0)), flags.Args()[1:]
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
