// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "karpenter/api/v1"
)

type completion = cobra.CompletionFunc

// complete registers what can follow a flag of the command.
func complete(c *cobra.Command, flag string, f completion) {
	_ = c.RegisterFlagCompletionFunc(flag, f) // the flag is there, once
}

// completeConnection registers what can follow the flags of a connection.
func (c *connection) complete(to *cobra.Command, s surroundings) {
	complete(to, "namespace", c.named(s, &corev1.Namespace{}, nil))
	complete(to, "karpenter-namespace", c.named(s, &corev1.Namespace{}, nil))
	for flag, names := range map[string]func(*api.Config) []string{
		"context": func(k *api.Config) []string { return keys(k.Contexts) },
		"cluster": func(k *api.Config) []string { return keys(k.Clusters) },
		"user":    func(k *api.Config) []string { return keys(k.AuthInfos) },
	} {
		complete(to, flag, func(_ *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
			raw, err := c.config().RawConfig()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return starting(names(&raw), start), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

func keys[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// named completes the names of objects of the kind for which wanted is true;
// nil = all. Objects in other namespaces than that of the flags are left out.
func (c *connection) named(s surroundings, kind client.Object, wanted func(client.Object) bool) completion {
	return func(command *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if _, pod := kind.(*corev1.Pod); len(args) > 0 && pod {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		s.stderr = io.Discard
		from, err := c.source(s)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx := command.Context()
		if ctx == nil {
			ctx = context.Background()
		}
		objects, err := from.List(ctx, kind)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		namespace, err := c.namespace()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, o := range objects {
			if (o.GetNamespace() == "" || o.GetNamespace() == namespace) && (wanted == nil || wanted(o)) {
				names = append(names, o.GetName())
			}
		}
		return starting(names, start), cobra.ShellCompDirectiveNoFileComp
	}
}

// nodePools completes nodepool/NAME.
func (c *connection) nodePools(s surroundings) completion {
	return func(command *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		names, directive := c.named(s, &v1.NodePool{}, nil)(command, args, "")
		for i := range names {
			names[i] = "nodepool/" + names[i]
		}
		return starting(names, start), directive
	}
}

// waits reports whether a pod has no node.
func waits(o client.Object) bool {
	p, ok := o.(*corev1.Pod)
	return ok && p.Spec.NodeName == "" && p.Status.Phase == corev1.PodPending
}

func starting(names []string, start string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, start) })
}
