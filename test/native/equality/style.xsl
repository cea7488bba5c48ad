<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:output method="text"/>
<xsl:template match="/"><xsl:for-each select="//item[v &gt; 9000]"><xsl:sort select="v" data-type="number"/><xsl:value-of select="concat(@n, ':', v, '&#10;')"/></xsl:for-each></xsl:template>
</xsl:stylesheet>
