// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"

	"karpenter/cloud/azure/retail"
)

// PublicCloud is the name of the cloud that has a price list.
const PublicCloud = "AzurePublicCloud"

// PriceList is the service, of a cloud that has one, that tells prices to anyone.
const PriceList cloud.ServiceName = "retailPrices"

// Clouds returns the names of the clouds that need no file.
func Clouds() []string { return []string{PublicCloud, "AzureUSGovernmentCloud", "AzureChinaCloud"} }

// Environment returns the endpoints of a cloud by its name, in any case, or from a
// file, if one is named.
func Environment(name, file string) (cloud.Configuration, error) {
	if file != "" {
		return environmentOf(file)
	}
	known := []cloud.Configuration{cloud.AzurePublic, cloud.AzureGovernment, cloud.AzureChina}
	i := slices.IndexFunc(Clouds(), func(n string) bool { return strings.EqualFold(n, name) })
	if i < 0 {
		return cloud.Configuration{}, fmt.Errorf("there is no cloud %q: want one of %s", name, strings.Join(Clouds(), ", "))
	}
	out := known[i]
	if Clouds()[i] == PublicCloud {
		out.Services = maps.Clone(out.Services)
		out.Services[PriceList] = cloud.ServiceConfiguration{Endpoint: retail.Endpoint}
	}
	return out, nil
}

// environmentOf reads the endpoints of a cloud from a JSON file.
func environmentOf(file string) (cloud.Configuration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return cloud.Configuration{}, fmt.Errorf("endpoints of the cloud: %w", err)
	}
	var said struct {
		ResourceManagerEndpoint string `json:"resourceManagerEndpoint"`
		ActiveDirectoryEndpoint string `json:"activeDirectoryEndpoint"`
		TokenAudience           string `json:"tokenAudience"`
		RetailPricesEndpoint    string `json:"retailPricesEndpoint"` // "" = built-in prices are used
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return cloud.Configuration{}, fmt.Errorf("endpoints of the cloud in %s: %w", file, err)
	}
	var missing []error
	for _, field := range []struct{ name, value string }{
		{"resourceManagerEndpoint", said.ResourceManagerEndpoint}, {"activeDirectoryEndpoint", said.ActiveDirectoryEndpoint}, {"tokenAudience", said.TokenAudience},
	} {
		if field.value == "" {
			missing = append(missing, fmt.Errorf("endpoints of the cloud in %s: %s is missing", file, field.name))
		}
	}
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: said.ActiveDirectoryEndpoint,
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: said.ResourceManagerEndpoint, Audience: said.TokenAudience},
			PriceList:             {Endpoint: said.RetailPricesEndpoint},
		},
	}, errors.Join(missing...)
}
