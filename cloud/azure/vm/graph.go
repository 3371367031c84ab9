// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"

	"karpenter/api/azure/v1beta1"
)

// Types of resources as Resource Graph has them.
const (
	vmType        = "microsoft.compute/virtualmachines"
	interfaceType = "Microsoft.Network/networkInterfaces"
	extensionType = vmType + "/extensions"
)

// mostRows is how many rows an answer can have.
const mostRows = 1000

// own asks for what was launched of a type, has the tag, and was not made by way of AKS.
func (c *Config) own(kind, tag string) string {
	return c.ofType(kind) + " | where tags has_cs '" + tag + "' | where not(tags has_cs '" + v1beta1.MachineNodeClaimTagKey + "')"
}

// ofType asks for what there is of a type beside the nodes.
func (c *Config) ofType(kind string) string {
	return "Resources | where type == '" + strings.ToLower(kind) + "' | where resourceGroup == '" + strings.ToLower(c.NodeResourceGroup) + "'"
}

// rows decodes the answer to a query, over all its pages. Without an order, Resource Graph
// shows rows of one page again on the next one, and leaves others out.
func rows[T any](ctx context.Context, c *Config, query string) ([]T, error) {
	var out []T
	query += " | order by id asc"
	options := &armresourcegraph.QueryRequestOptions{ResultFormat: to.Ptr(armresourcegraph.ResultFormatObjectArray), Top: to.Ptr(int32(mostRows))}
	for {
		answer, err := c.Graph.Resources(ctx, armresourcegraph.QueryRequest{Subscriptions: []*string{&c.Subscription}, Query: &query, Options: options}, nil)
		if err != nil {
			return nil, fmt.Errorf("ask Resource Graph: %w", err)
		}
		text, err := json.Marshal(answer.Data)
		if err != nil {
			return nil, err
		}
		var page []T
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("answer of Resource Graph: %w", err)
		}
		out = append(out, page...)
		if answer.SkipToken == nil || *answer.SkipToken == "" {
			return out, nil
		}
		options.SkipToken = answer.SkipToken
	}
}

// lastPart is the name of a resource by its ID, in lower case.
func lastPart(id string) string { return strings.ToLower(id[strings.LastIndex(id, "/")+1:]) }
