(function(){
function begin(){
/* The second is a name in XML, not an address. */
var doc=document,NS="http:"+"//www.w3.org/2000/svg";
function all(selector,root){return Array.from((root||doc).querySelectorAll(selector));}
function html(name,attributes,children){return make(doc.createElement(name),attributes,children);}
function svg(name,attributes,children){return make(doc.createElementNS(NS,name),attributes,children);}
/* A text in the language of the page, or its part before a comma. */
var WORDS=DATA.words||{};
function say(text){
if(typeof text!=="string")return text;
var part=text.split(", ")[0];
return WORDS[text]||(WORDS[part]?WORDS[part]+text.slice(part.length):text);}
function make(node,attributes,children){
for(var key in attributes||{})if(attributes[key]!=null)node.setAttribute(key,key==="aria-label"||key==="title"?say(attributes[key]):attributes[key]);
(Array.isArray(children)?children:children==null?[]:[children]).forEach(function(child){node.append(say(child));});
return node;}
function round(value){return Number(value.toPrecision(3));}
function count(value){return value>=1e6?round(value/1e6)+"M":value>=1e4?round(value/1e3)+"k":round(value).toLocaleString("en");}
function time(us){return us>=1e6?round(us/1e6)+" s":us>=1e3?round(us/1e3)+" ms":us>=1?round(us)+" µs":round(us*1e3)+" ns";}
function value(cell,number){return cell.u==="time"?time(number):count(number)+(cell.u?" "+cell.u:"");}

/* Series in full: DATA leaves out what follows from their place. */
Object.keys(DATA.cells).forEach(function(id){
var c=DATA.cells[id],first=c.r[0],low=c.h[0],factor=c.h[1];
c.r=c.r.slice(1).map(function(v,i){return [first+i,v];}).filter(function(r){return r[1]!=null;});
c.p=c.p.map(function(v,i){return [DATA.q[i],v];});
c.h=c.h.slice(2).map(function(n,i){return [low*Math.pow(factor,i),low*Math.pow(factor,i+1),n];}).filter(function(b){return b[2];});});

/* The tooltip of points, for pointers and the keyboard. */
var tip=html("div",{id:"tip",role:"tooltip"});doc.body.append(tip);
function show(point,text){
if(!text)return;
tip.textContent=text;tip.style.display="block";
var at=point.querySelector(".hit").getBoundingClientRect(),wide=doc.documentElement.clientWidth;
var left=at.left+at.width/2-tip.offsetWidth/2;
tip.style.left=Math.max(6,Math.min(left,wide-tip.offsetWidth-6))+window.scrollX+"px";
tip.style.top=Math.max(window.scrollY+6,at.top+window.scrollY-tip.offsetHeight-6)+"px";}
function hide(){tip.style.display="none";}
/* The facts of a cell are written once, at its first point. */
var tips={};
all(".pt title").forEach(function(title){tips[title.parentNode.dataset.c]=title.textContent;title.remove();});
all(".pt").forEach(function(point){
var text=tips[point.dataset.c],at=/^M([\d.-]+) ([\d.-]+)/.exec(point.querySelector(".m").getAttribute("d"));
point.append(svg("circle",{"class":"hit",cx:at[1],cy:at[2],r:10}));
make(point,{"aria-label":text,tabindex:0,role:DATA.cells[point.dataset.c]?"button":"img"});
point.addEventListener("pointerenter",function(){show(point,text);});
point.addEventListener("focus",function(){show(point,text);});
point.addEventListener("pointerleave",hide);point.addEventListener("blur",hide);});

/* The state of the page: selected cells, and values that are filtered out. It is the link to the page. */
var state={cells:[],off:new Set()},from=null,panel=doc.getElementById("cell");
function read(){
var parts=new URLSearchParams(location.hash.slice(1));
state.cells=(parts.get("cells")||"").split(",").filter(function(id){return DATA.cells[id];}).slice(0,2);
state.off=new Set((parts.get("without")||"").split(",").filter(Boolean));}
function write(){
var parts=[];
if(state.cells.length)parts.push("cells="+state.cells.join(","));
if(state.off.size)parts.push("without="+Array.from(state.off).map(encodeURIComponent).join(","));
history.replaceState(null,"",parts.length?"#"+parts.join("&"):location.pathname+location.search);}
function key(dimension,level){return DATA.dims[dimension][0]+":"+DATA.dims[dimension][1][level];}
function visible(id){
var cell=DATA.cells[id];
return !cell||cell.d.every(function(level,dimension){return level<0||!state.off.has(key(dimension,level));});}

/* The filter: a switch for each value of each axis that varies. */
var filter=doc.getElementById("filter"),switches=[];
DATA.dims.forEach(function(dimension,d){
var group=html("fieldset",{},html("legend",{},dimension[0]));
dimension[1].forEach(function(level,l){
var one=html("button",{type:"button","aria-pressed":"true"},level);
one.addEventListener("click",function(){
var name=key(d,l);
if(!state.off.delete(name))state.off.add(name);
write();apply();});
switches.push([one,key(d,l)]);group.append(one);});
filter.append(group);});
var reset=html("button",{type:"button","class":"reset"},"Show all");
reset.addEventListener("click",function(){state.off.clear();write();apply();});
filter.append(reset);
filter.hidden=!DATA.dims.length;

function apply(){
switches.forEach(function(one){one[0].setAttribute("aria-pressed",String(!state.off.has(one[1])));});
reset.hidden=!state.off.size;
all("[data-c]").forEach(function(node){
node.toggleAttribute("data-off",!visible(node.dataset.c));
node.toggleAttribute("data-chosen",state.cells.includes(node.dataset.c));});
all(".charts .line,.panels .line").forEach(function(line){
var points=all(".pt",line);
if(points.length)line.toggleAttribute("data-off",points.every(function(point){return point.hasAttribute("data-off");}));});
all(".panels figure").forEach(function(figure){
all("[data-line]:not(.line)",figure).forEach(function(label){
var its=all(".line",figure).find(function(line){return line.dataset.line===label.dataset.line;});
if(its)label.toggleAttribute("data-off",its.hasAttribute("data-off"));});
var lines=all(".line",figure);
figure.toggleAttribute("data-off",lines.length>0&&lines.every(function(line){return line.hasAttribute("data-off");}));});
draw();}

/* Selection: the first cell, then the one that it is compared with, then anew. */
function choose(ids,node){
if(node&&!panel.contains(node))from=node;
state.cells=ids;write();apply();
if(ids.length&&node&&!panel.contains(node)){
panel.scrollIntoView({block:"start",behavior:matchMedia("(prefers-reduced-motion: reduce)").matches?"auto":"smooth"});
panel.querySelector("h2").focus({preventScroll:true});}}
function pick(node){
var id=node.dataset.c,other=node.dataset.b;
if(!DATA.cells[id])return;
choose(other!=null&&DATA.cells[other]?[id,other]:state.cells.length===1&&state.cells[0]!==id?[state.cells[0],id]:[id],node);}
function close(){choose([],null);if(from&&from.focus)from.focus();}
doc.addEventListener("click",function(event){
var node=event.target.closest("[data-c]");
if(node&&!String(getSelection()))pick(node);});
doc.addEventListener("keydown",function(event){
if(event.key==="Escape"&&state.cells.length){close();return;}
if(event.key!=="Enter"&&event.key!==" ")return;
var node=event.target.closest&&event.target.closest("[data-c]");
if(node&&event.target===node){event.preventDefault();pick(node);}});
all("tr[data-c]").forEach(function(row){
if(DATA.cells[row.dataset.c])make(row,{tabindex:0,"aria-haspopup":"true"});});
window.addEventListener("hashchange",function(){read();apply();});

/* Charts of a result. */
var W=420,H=240,L=52,R=12,T=22,B=34;
function scale(log,low,high,start,end){
if(!(high>low)){if(log){low/=2;high*=2;}else{high=low+1;}}
var a=log?Math.log(low):low,b=log?Math.log(high):high;
return function(number){
var at=((log?Math.log(Math.max(number,1e-12)):number)-a)/(b-a);
return start+Math.max(0,Math.min(1,at))*(end-start);};}
function steps(log,low,high){
var found=[],step,decade;
if(log&&high/low>1.6){
for(decade=Math.floor(Math.log10(low));decade<=Math.log10(high);decade++)(high/low>300?[1]:[1,2,5]).forEach(function(n){
var at=n*Math.pow(10,decade);if(at>=low*.999&&at<=high*1.001)found.push(at);});
if(found.length>1)return found;found=[];}
step=Math.pow(10,Math.floor(Math.log10((high-low)/4||1)));
while((high-low)/step>6)step*=(high-low)/step>14?5:2;
for(var at=Math.ceil(low/step)*step;at<=high*1.0001;at+=step)found.push(at);
return found;}
function frame(name,x,y){
var root=svg("svg",{viewBox:"0 0 "+W+" "+H,role:"img","aria-label":name});
var px=scale(x.log,x.low,x.high,L,W-R),py=scale(y.log,y.low,y.high,H-B,T);
(y.ticks||steps(y.log,y.low,y.high)).forEach(function(at){
root.append(svg("path",{"class":"grid",d:"M"+L+" "+py(at).toFixed(1)+"H"+(W-R)}),svg("text",{"class":"tick y",x:L-6,y:py(at)+4},y.show(at)));});
var free=-1e9;
(x.ticks||steps(x.log,x.low,x.high)).forEach(function(at){
var text=x.show(at),half=text.length*3.2;
root.append(svg("path",{"class":"axis",d:"M"+px(at).toFixed(1)+" "+(H-B)+"v4"}));
if(px(at)-half>free){root.append(svg("text",{"class":"tick x",x:px(at),y:H-B+16},text));free=px(at)+half+6;}});
root.append(svg("path",{"class":"axis",d:"M"+L+" "+(H-B)+"H"+(W-R)}),svg("text",{"class":"unit",x:0,y:11},y.name),
svg("text",{"class":"unit",x:W-R,y:H-3,"text-anchor":"end"},x.name));
return {root:root,x:px,y:py};}
function extent(values,log){
var good=values.filter(function(v){return isFinite(v)&&(!log||v>0);});
if(!good.length)return null;
var low=Math.min.apply(null,good),high=Math.max.apply(null,good);
return [low,high];}
function path(points,dx,dy){return points.map(function(p,n){return (n?"L":"M")+dx(p[0]).toFixed(1)+" "+dy(p[1]).toFixed(1);}).join("");}
function table(head,rows){
return html("div",{"class":"box"},html("table",{},[html("thead",{},html("tr",{},head.map(function(h,n){return html("th",n?{"class":"num"}:{},h);}))),
html("tbody",{},rows.map(function(row){return html("tr",{},row.map(function(c,n){return html(n?"td":"th",n?{"class":"num"}:{scope:"row"},String(c));}));}))]));}
function figure(title,root,head,rows){
return html("figure",{},[html("figcaption",{},title),root,saves(function(){return root;},title),html("details",{},[html("summary",{},"Values"),table(head,rows)])]);}

/* A chart as a file: with the colours and fonts that it has here, on the page's background. */
var STYLE=["fill","fill-opacity","stroke","stroke-width","stroke-dasharray","stroke-linejoin","stroke-linecap","opacity","font-family","font-size","font-style","font-weight","text-anchor"];
function picture(root,title){
var copy=root.cloneNode(true),box=root.viewBox.baseVal,shown=[root].concat(all("*",root));
[copy].concat(all("*",copy)).forEach(function(node,n){
var style=getComputedStyle(shown[n]);
if(style.display==="none"||node.matches(".hit")){node.setAttribute("display","none");return;}
node.setAttribute("style",STYLE.map(function(name){return name+":"+style.getPropertyValue(name);}).join(";"));});
all("[display=none]",copy).forEach(function(node){node.remove();});
/* Labels may lie beside the view box. */
var m=8,head=20,w=box.width+2*m,h=box.height+2*m+head,ink=getComputedStyle(doc.body);
make(copy,{xmlns:NS,width:w,height:h,viewBox:[box.x-m,box.y-m-head,w,h].join(" ")});
copy.prepend(svg("rect",{x:box.x-m,y:box.y-m-head,width:w,height:h,fill:ink.backgroundColor}),
svg("text",{x:box.x,y:box.y-head+7,fill:ink.color,style:"font:600 12px sans-serif"},title));
return {text:new XMLSerializer().serializeToString(copy),width:w,height:h};}
function download(name,url){var link=html("a",{href:url,download:name});doc.body.append(link);link.click();link.remove();}
function saves(find,title){
function save(png){
var found=picture(find(),title),url="data:image/svg+xml;charset=utf-8,"+encodeURIComponent(found.text);
var name=title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu,"-").replace(/^-|-$/g,"");
if(!png){download(name+".svg",url);return;}
var image=new Image();
image.onload=function(){
var canvas=html("canvas",{width:2*found.width,height:2*found.height});
canvas.getContext("2d").drawImage(image,0,0,canvas.width,canvas.height);
download(name+".png",canvas.toDataURL("image/png"));};
image.src=url;}
return html("p",{"class":"save"},[["SVG",false],["PNG",true]].map(function(kind){
var one=html("button",{type:"button",title:"Save this chart as "+kind[0]},kind[0]);
one.addEventListener("click",function(event){event.stopPropagation();save(kind[1]);});
return one;}));}
/* The plots of a ranking as one chart, with their labels; it is in the page only while it is saved. */
function forest(table){
var drawn=table.querySelector(".plot svg").viewBox.baseVal,L=270,y=26,root=svg("svg",{}),place=html("div",{"class":"ranking forest"},root);
function text(x,y,said,more){root.append(svg("text",Object.assign({"class":"tick",x:x,y:y},more),said));}
all(".ticks span",table).forEach(function(tick){text(L+parseFloat(tick.style.left)/100*drawn.width,16,tick.textContent,{"text-anchor":"middle"});});
all("tbody tr",table).forEach(function(row){
var plot=row.querySelector(".plot");
if(!plot){text(0,y+24,row.textContent,{style:"font-weight:600"});y+=34;return;}
text(0,y+drawn.height*.65,row.querySelector("th").textContent.trim());
text(L+drawn.width+12,y+drawn.height*.65,plot.nextElementSibling.textContent);
all("use,path",plot).forEach(function(part){
(part.matches("use")?all("path",doc.getElementById("margin")):[part]).forEach(function(line){
var copy=line.cloneNode(),style=getComputedStyle(line);
copy.style.cssText="fill:"+style.fill+";stroke:"+style.stroke+";opacity:"+getComputedStyle(part.closest("svg")).opacity;
copy.setAttribute("transform","translate("+L+" "+y+")");
root.append(copy);});});
y+=drawn.height;});
root.setAttribute("viewBox","0 0 "+(L+drawn.width+190)+" "+(y+6));
table.after(place);
setTimeout(function(){place.remove();});
return root;}
function line(n,node){return svg("g",{"class":"line c"+n},node);}

function percentiles(cells){
var points=cells.map(function(c){return c.p.map(function(p){return [-Math.log10(1-p[0]/100),p[1],p[0]];});});
var flat=points.flat(),ys=extent(flat.map(function(p){return p[1];}),true),most=Math.max(2,Math.max.apply(null,flat.map(function(p){return p[0];})));
if(!ys)return null;
var f=frame("Response times by percentile",{low:0,high:most,name:"percentile",ticks:[0,1,2,3,4,5,6].filter(function(t){return t<=most+.01;}),
show:function(t){return t?String(Number((100-Math.pow(10,2-t)).toFixed(t>2?t-2:0))):"0";}},{log:true,low:ys[0]*.9,high:ys[1]*1.1,name:"time",show:time});
points.forEach(function(p,n){f.root.append(line(n,svg("path",{"class":"curve",d:path(p,f.x,f.y)})));});
return figure("Times by percentile",f.root,["percentile"].concat(cells.map(function(c){return c.n;})),
cells[0].p.map(function(p,n){return [p[0]+" %"].concat(cells.map(function(c){return c.p[n]?time(c.p[n][1]):"–";}));}));}
function histogram(cells){
var xs=extent(cells.flatMap(function(c){return c.h.flatMap(function(b){return [b[0],b[1]];});}),true);
if(!xs)return null;
var shares=cells.map(function(c){var sum=c.h.reduce(function(s,b){return s+b[2];},0);return c.h.map(function(b){return [b[0],b[1],b[2]/sum];});});
var most=Math.max.apply(null,shares.flat().map(function(b){return b[2];}));
var f=frame("Histogram of times",{log:true,low:xs[0],high:xs[1],name:"time",show:time},{low:0,high:most*1.05,name:"share of operations",show:function(v){return round(v*100)+" %";}});
shares.forEach(function(bins,n){
var d="M"+f.x(bins[0][0]).toFixed(1)+" "+f.y(0).toFixed(1),end=bins[0][0];
bins.forEach(function(b){
if(b[0]>end*1.001)d+="V"+f.y(0).toFixed(1)+"H"+f.x(b[0]).toFixed(1);
d+="V"+f.y(b[2]).toFixed(1)+"H"+f.x(b[1]).toFixed(1);end=b[1];});
d+="V"+f.y(0).toFixed(1);
f.root.append(line(n,svg("path",{"class":"area",d:d})));});
var rows=[];
shares.forEach(function(bins,n){bins.forEach(function(b){rows.push([cells[n].n,time(b[0])+" – "+time(b[1]),round(b[2]*100)+" %"]);});});
return figure("Histogram",f.root,["result","time","share"],rows);}
/* The server's work in the background, behind a chart over time; in words too, unless another chart has them. */
function events(cells,f,made,brief){
var words=[];
cells.forEach(function(c){(c.e||[]).forEach(function(e){
var from=f.x(e[1]/1e3),wide=Math.max(2,f.x(e[2]/1e3)-from),word=e[0]+" "+plain(e[1]/1e3)+" – "+plain(e[2]/1e3)+" s";
f.root.prepend(svg("rect",{"class":"event",x:from.toFixed(1),y:T,width:wide.toFixed(1),height:H-B-T},svg("title",{},word)));
words.push(word);});});
if(words.length&&!brief)made.insertBefore(html("p",{"class":"soft"},"Grey: the server's work in the background: "+words.join(", ")+"."),f.root.nextSibling);
return made;}
function plain(value){return String(round(value));}
function stairs(width,values,f){
var d="",pen=false;
values.forEach(function(v,i){
if(v==null){pen=false;return;}
d+=(pen?"L":"M")+f.x(i*width).toFixed(1)+" "+f.y(v).toFixed(1)+"H"+f.x((i+1)*width).toFixed(1);pen=true;});
return d;}
function course(cells,key,title,name,log,show){
var drawn=cells.filter(function(c){return c[key];});
if(!drawn.length)return null;
function part(c){return key==="w"?c.w[0]/c.w[1].length:c.t[0];}
var ends=extent(drawn.flatMap(function(c){return c[key][1].filter(function(v){return v!=null;});}),log);
if(!ends)return null;
var longest=Math.max.apply(null,drawn.map(function(c){return part(c)*c[key][1].length;}));
var f=frame(title,{low:0,high:longest,name:"seconds",show:plain},{log:log,low:log?ends[0]*.9:0,high:ends[1]*1.05,name:name,show:show});
cells.forEach(function(c,n){if(c[key])f.root.append(line(c.z==null?n:c.z,svg("path",{"class":"curve",d:stairs(part(c),c[key][1],f)})));});
var rows=[];
drawn.forEach(function(c){c[key][1].forEach(function(v,i){rows.push([c.n,plain(part(c)*i)+" s",v==null?"–":show(v)]);});});
return events(drawn,f,figure(title,f.root,["result","from",key==="w"?"operations/s":"p99"],rows),key==="t"&&drawn.every(function(c){return c.w;}));}

/* Areas on top of each other: [name, class, values]. A value holds since the one before, the first since the start. */
function stack(title,times,series,most,name,lines){
function whole(values){return [values[0]].concat(values);}
var at=[0].concat(times),f=frame(title,{low:0,high:at[at.length-1]/1e3,name:"seconds",show:plain},{low:0,high:most||1,name:name,show:plain});
var base=at.map(function(){return 0;}),keys=[];
series.forEach(function(one){
var values=whole(one[2]),top=base.map(function(v,i){return v+(values[i]||0);});
var d=path(at.map(function(t,i){return [t/1e3,top[i]];}),f.x,f.y)+at.map(function(t,i){return [t/1e3,base[i]];}).reverse().map(function(p){return "L"+f.x(p[0]).toFixed(1)+" "+f.y(p[1]).toFixed(1);}).join("")+"Z";
f.root.append(svg("path",{"class":"stack "+one[1],d:d},svg("title",{},one[0])));
keys.push(one);base=top;});
(lines||[]).forEach(function(one){
f.root.append(svg("path",{"class":"waits "+one[1],d:path(whole(one[2]).map(function(v,i){return [at[i]/1e3,v||0];}),f.x,f.y)},svg("title",{},one[0])));
keys.push(one);});
var made=figure(title,f.root,["time"].concat(keys.map(function(one){return one[0];})),times.map(function(t,i){
return [plain(t/1e3)+" s"].concat(keys.map(function(one){var v=(one[3]||one[2])[i];return v==null?"–":count(v);}));}));
made.insertBefore(html("ul",{"class":"legend"},keys.map(function(one){return html("li",{},[html("i",{"class":"swatch "+one[1]}),one[0]]);})),f.root.nextSibling);
return {made:made,f:f};}
function usage(cell){
if(!cell.s)return [];
var s=cell.s,at=s[0],server=s[2]||at.map(function(){return 0;}),figures=[];
var tiers=[["client","t0",s[1]],["server","t1",server],["other processes","t2",at.map(function(t,i){return Math.max(0,s[3][i]-s[1][i]-(server[i]||0));})]];
if(!s[2])tiers.splice(1,1);
figures.push(stack("Processors in use, "+cell.n,at,tiers,Math.max(cell.cpus||1,Math.max.apply(null,s[3])),"processors in use"));
/* Each line has its own scale: the disk all of the time, the others their maximum. */
var lines=[];
function relative(name,kind,values,factor){
if(!values)return;
var most=Math.max.apply(null,values);
if(most>0)lines.push([name+" (at most "+count(most*factor)+")",kind,values.map(function(v){return v/most;}),values.map(function(v){return v*factor;})]);}
relative("threads that wait for a disk","t4",s[4],1);
relative("network, MB/s","t5",s[6],1e-6);
if(s[5]||lines.length)figures.push(stack("Disk and network, "+cell.n,at,s[5]?[["disk busy, share of the time","t3",s[5]]]:[],1,"disk: share of the time; others: of their maximum",lines));
return figures;}
function waits(cell){
if(!cell.a||!cell.a[1].length)return [];
var at=cell.a[0],series=cell.a[1].map(function(one,n){return [one[0],"t"+[0,1,3,4,5,6,2][n%7],one[1]];});
var sums=at.map(function(t,i){return series.reduce(function(sum,one){return sum+one[2][i];},0);});
return [stack("Sessions at work on the server, "+cell.n,at,series,Math.max.apply(null,sums)*1.05,"sessions by what they wait for")];}
function tiers(cell){return usage(cell).concat(waits(cell)).map(function(one){return events([cell],one.f,one.made,cell.w||cell.t);});}
function rounds(cells){
var values=cells.flatMap(function(c){return c.r.map(function(r){return r[1];}).concat(c.v.slice(1).filter(function(v){return v!=null;}));});
var ys=extent(values,false);
if(!ys||cells[0].u!==cells[cells.length-1].u)return null;
var pad=(ys[1]-ys[0])*.08||ys[1]*.05;
var f=frame("Rounds",{low:0,high:cells.length,name:"",ticks:[],show:String},{low:ys[0]-pad,high:ys[1]+pad,name:cells[0].m+" of each round; bar: mean with interval",show:function(v){return cells[0].u==="time"?time(v):count(v);}});
function place(c,n,i){return n+.32+.6*(i+.5)/c.r.length;}
if(cells.length===2){
cells[0].r.forEach(function(r,i){
var j=cells[1].r.findIndex(function(o){return o[0]===r[0];});
if(j>=0)f.root.append(svg("path",{"class":"grid",d:"M"+f.x(place(cells[0],0,i)).toFixed(1)+" "+f.y(r[1]).toFixed(1)+"L"+f.x(place(cells[1],1,j)).toFixed(1)+" "+f.y(cells[1].r[j][1]).toFixed(1)}));});}
cells.forEach(function(c,n){
var g=line(n),x=f.x(n+.16);
if(c.v[1]!=null)g.append(svg("path",{"class":"bar",d:"M"+x+" "+f.y(c.v[1])+"V"+f.y(c.v[2])+"M"+(x-5)+" "+f.y(c.v[1])+"h10M"+(x-5)+" "+f.y(c.v[2])+"h10"}));
g.append(svg("circle",{cx:x,cy:f.y(c.v[0]),r:4.5}));
c.r.forEach(function(r,i){g.append(svg("circle",{cx:f.x(place(c,n,i)),cy:f.y(r[1]),r:3},svg("title",{},"round "+r[0]+": "+value(c,r[1]))));});
f.root.append(g,svg("text",{"class":"tick x",x:f.x(n+.5),y:H-B+16},cells.length>1?String.fromCharCode(65+n):"rounds, in their order"));});
var numbers=Array.from(new Set(cells.flatMap(function(c){return c.r.map(function(r){return r[0];});}))).sort(function(a,b){return a-b;});
return figure("All rounds",f.root,["round"].concat(cells.map(function(c){return c.n;})),numbers.map(function(n){
return [n].concat(cells.map(function(c){var r=c.r.find(function(r){return r[0]===n;});return r?value(c,r[1]):"–";}));}));}

function facts(cells){
var rows=[[cells[0].m].concat(cells.map(function(c){return value(c,c.v[0])+(c.v[1]==null?"":" ("+value(c,c.v[1])+" to "+value(c,c.v[2])+")");}))];
["p50","p90","p95","p99","p99.9","max"].forEach(function(name,n){rows.push([name].concat(cells.map(function(c){return c.l?time(c.l[n]):"–";})));});
rows.push(["operations counted"].concat(cells.map(function(c){return count(c.o);})));
rows.push(["bottleneck"].concat(cells.map(function(c){return c.k||"–";})));
return table([""].concat(cells.map(function(c,n){return (cells.length>1?String.fromCharCode(65+n)+": ":"")+c.n;})),rows);}
function list(place){
var select=html("select",{"aria-label":place?"Compared with":"Result"});
if(place)select.append(html("option",{value:""},"– no other result –"));
Object.keys(DATA.cells).forEach(function(id){
var option=html("option",{value:id},DATA.cells[id].n);
option.selected=state.cells[place]===id;select.append(option);});
select.addEventListener("change",function(){
var chosen=state.cells.slice();
if(select.value)chosen[place]=select.value;else chosen.length=1;
choose(chosen,select);
var again=panel.querySelectorAll("select")[place];if(again)again.focus();});
return select;}
/* A comparison in words, from its row. */
function says(row){
var plot=row.querySelector(".plot");
return DATA.cells[row.dataset.c].n+say(" against ")+DATA.cells[row.dataset.b].n+": "+plot.nextSibling.textContent;}
function draw(){
var cells=state.cells.map(function(id){return DATA.cells[id];});
panel.hidden=!cells.length;
var old=panel.querySelector(".body");if(old)old.remove();
if(!cells.length)return;
panel.querySelector("h2").textContent=say(cells.length>1?"Two results":"One result");
var shut=html("button",{type:"button"},"Close");
shut.addEventListener("click",close);
var body=html("div",{"class":"body"},[html("p",{"class":"pick"},[list(0)," against ",list(1)," ",shut])]);
if(cells.length===2){
var verdict=all("tr[data-b]").find(function(row){return state.cells.includes(row.dataset.c)&&state.cells.includes(row.dataset.b);});
body.append(html("p",{"class":verdict?"":"soft"},verdict?["Verdict: ",says(verdict)]:"The ranking has no comparison of these two results: their intervals are not corrected for it. What is shown is no verdict."));
body.append(html("ul",{"class":"legend"},cells.map(function(c,n){return html("li",{},[html("i",{"class":"swatch c"+n}),String.fromCharCode(65+n)+": "+c.n]);})));}
body.append(facts(cells));
var charts=[percentiles(cells),histogram(cells),rounds(cells),
course(cells,"w","Throughput over the time of a trial","operations per second, mean of trials",false,count),
course(cells,"t","p99 over the time of a trial","99th percentile, median of trials",true,time)].concat(cells.flatMap(tiers)).filter(Boolean);
body.append(html("div",{"class":"panels"},charts));
panel.append(body);}

/* The rates over time of what the rankings compare, and files of the charts that are there already. */
all("[data-courses]").forEach(function(place){
var cells=place.dataset.courses.split(",").map(function(one){
var parts=one.split(":");return Object.assign({},DATA.cells[parts[0]],{z:Number(parts[1])});});
var made=course(cells,"w",place.dataset.name,"operations per second",false,count);
if(made){place.replaceWith(made);doc.getElementById("courses").hidden=false;}});
all("main figure").forEach(function(figure){
if(figure.querySelector(".save"))return;
var drawn=all("svg",figure),title=drawn[0].getAttribute("aria-label");
figure.append(saves(function(){return drawn.find(function(one){return one.getBoundingClientRect().width>0;})||drawn[0];},title));});
all(".plotted:has(.plot svg)").forEach(function(table){table.after(saves(function(){return forest(table);},doc.title));});
doc.documentElement.classList.add("live");
read();apply();}
/* After the first paint: no reader needs the script for what is painted. A page in the background is never painted. */
var begun=false;
function once(){if(!begun){begun=true;begin();}}
requestAnimationFrame(function(){setTimeout(once);});
setTimeout(once,1000);
})();
