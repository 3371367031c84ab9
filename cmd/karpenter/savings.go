// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	kubescheme "k8s.io/client-go/kubernetes/scheme"

	"karpenter/cloud/ec2"
	"karpenter/cmd/karpenter/savings"
	"karpenter/cmd/karpenter/situation"
	"karpenter/model"
	"karpenter/solve"
)

type saving struct {
	connection
	output
	files, prices []string
	region        string
	discount      float64 // in percent
	assumed       map[string]string
}

func savingsCommand(s surroundings) *cobra.Command {
	var v saving
	c := &cobra.Command{
		Use:   "savings",
		Short: "Show what any cluster would cost with Karpenter",
		Long: `Compare what the nodes of a cluster cost with what the same pods would cost
planned from scratch: on demand, with Spot, with Arm, each beside the proven
minimum. Karpenter need not be installed. Nothing is changed, and nothing leaves
this machine: prices come with the program.`,
		Example: `  karpenter savings
  karpenter savings --context production -o markdown

  # Without access from here:
  kubectl get nodes,pods,daemonsets,pdb,namespaces -A -o json > cluster.json
  karpenter savings -f cluster.json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return v.run(c.Context(), s) },
	}
	flags := c.Flags()
	v.connection.define(c, flags, s)
	whole(c)
	v.output.define(c, flags)
	flags.StringArrayVarP(&v.files, "filename", "f", nil, "read objects that kubectl get -o json printed instead of a cluster; - is standard input; can be repeated")
	flags.StringArrayVar(&v.prices, "price", nil, "dollars per hour of an instance type, as TYPE=DOLLARS; can be repeated")
	flags.StringVar(&v.region, "region", "", "region of the prices (default: that of the nodes)")
	flags.Float64Var(&v.discount, "spot-discount", 60, "how many percent less than on demand Spot is assumed to cost")
	flags.StringToStringVar(&v.assumed, "assume-requests", nil, "count a container without a request as this much, such as cpu=100m,memory=128Mi")
	return c
}

func (v *saving) run(ctx context.Context, s surroundings) error {
	if err := v.check(); err != nil {
		return err
	}
	if !(v.discount >= 0 && v.discount < 100) {
		return usageError{fmt.Errorf("--spot-discount: %v: want a percentage from 0 to 99", v.discount)}
	}
	prices, err := pricesOf(v.prices)
	if err != nil {
		return err
	}
	if err := v.knownRegion(); err != nil {
		return err
	}
	missing, err := requestsOf(v.assumed)
	if err != nil {
		return err
	}
	cluster, err := v.cluster(ctx, s)
	if err != nil {
		return err
	}
	planner := &solve.Planner{}
	report, err := savings.Of(cluster, savings.Options{
		Region: v.region, SpotDiscount: v.discount / 100, Prices: prices, Missing: missing, Now: time.Now(),
		Place: func(snapshot *model.Snapshot, p model.Policy) *model.Plan {
			planning(s)
			return planner.Place(snapshot, p)
		},
	})
	doneReading(s)
	if err != nil {
		return err
	}
	text := func(w io.Writer) error { return report.Text(w, cmp.Or(v.columns(s), math.MaxInt)) }
	if err := v.write(s, report, pages{text: text, markdown: report.Markdown}); err != nil {
		return err
	}
	again := "karpenter savings -o markdown"
	for _, name := range v.files {
		again += " -f " + name
	}
	v.next(s, again, "karpenter migrate --check MANIFESTS")
	return nil
}

// knownRegion rejects a region whose prices did not come with the program.
func (v *saving) knownRegion() error {
	regions, err := ec2.Regions()
	if err != nil || v.region == "" || slices.Contains(regions, v.region) {
		return err
	}
	return usageError{fmt.Errorf("--region: no prices of %q come with this program: want one of %s%s", v.region, strings.Join(regions, ", "), meant(like(v.region, regions)))}
}

// cluster reads the files, or the cluster if there are none.
func (v *saving) cluster(ctx context.Context, s surroundings) (*savings.Cluster, error) {
	out := &savings.Cluster{}
	if len(v.files) == 0 {
		from, err := v.source(s)
		if err != nil {
			return nil, err
		}
		defer doneReading(s)
		for _, kind := range savings.Kinds() {
			objects, err := from.List(ctx, kind)
			if err != nil {
				return nil, situation.Hinted(err)
			}
			for _, o := range objects {
				out.Add(o)
			}
		}
		return out, nil
	}
	objects := runtime.NewScheme()
	if err := kubescheme.AddToScheme(objects); err != nil {
		return nil, err
	}
	for _, name := range v.files {
		if err := readFile(name, s.stdin, func(r io.Reader) error { return out.Read(r, objects) }); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readFile has read read a file, or standard input if the name is "-".
func readFile(name string, stdin io.Reader, read func(io.Reader) error) error {
	if name == "-" {
		if err := read(stdin); err != nil {
			return fmt.Errorf("standard input: %w", err)
		}
		return nil
	}
	f, err := os.Open(name)
	if err != nil {
		return usageError{fmt.Errorf("-f: %w", err)}
	}
	defer f.Close()
	if err := read(f); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func requestsOf(given map[string]string) (corev1.ResourceList, error) {
	out := corev1.ResourceList{}
	for name, value := range given {
		q, err := resource.ParseQuantity(value)
		if err != nil || q.Sign() < 0 || name != "cpu" && name != "memory" {
			return nil, usageError{fmt.Errorf("--assume-requests: \"%s=%s\": want quantities of cpu and memory, such as cpu=100m,memory=128Mi", name, value)}
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}

func pricesOf(given []string) (map[string]float64, error) {
	out := map[string]float64{}
	for _, text := range given {
		name, value, _ := strings.Cut(text, "=")
		price, err := strconv.ParseFloat(value, 64)
		if err == nil && (price <= 0 || math.IsInf(price, 0) || math.IsNaN(price)) {
			err = errors.New("want more than 0")
		}
		if name == "" || err != nil {
			return nil, usageError{fmt.Errorf("--price: %q: want TYPE=DOLLARS, such as m5.large=0.096", text)}
		}
		out[name] = price
	}
	return out, nil
}
